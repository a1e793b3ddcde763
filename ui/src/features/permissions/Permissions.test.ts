import { screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { appError } from "../../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../../tests/onePage.ts";
import { pagesHost, policies } from "../../../tests/pages.ts";
import Permissions from "./Permissions.svelte";

const rows = () => screen.getAllByTestId("permission");
const row = (server: string, kind: string) => rows().find((one) => one.dataset.server === server && one.dataset.kind === kind)!;

describe.each(["en", "zh-CN"] as const)("the permissions page in %s", (language) => {
  it("is accessible, full and empty", async () => {
    const { container, unmount } = await openPage(Permissions, pagesHost(), { language });
    expect(rows()).toHaveLength(5);
    await expectAccessible(container);
    unmount();
    const host = pagesHost();
    host.answers.policy_list = () => [];
    const empty = await openPage(Permissions, host, { language });
    expect(screen.queryAllByTestId("permission")).toHaveLength(0);
    await expectAccessible(empty.container);
  });
});

it("says what, where and which answer", async () => {
  await openPage(Permissions, pagesHost());
  const reads = rows().find((one) => one.dataset.tool === "read_file")!;
  expect(reads).toHaveTextContent("Read a document");
  expect(reads).toHaveTextContent("Only in “Heating offers”");
  expect(reads).toHaveTextContent("In one chat");
  const send = row("notes", "tool");
  expect(send).toHaveTextContent("Send a page");
  expect(send).toHaveTextContent("Never");
  expect(send).toHaveTextContent("Nothing held back yet");
  expect(row("notes", "launch")).toHaveTextContent("Start on this computer");
});

it("puts the decisions of removed connections last", async () => {
  await openPage(Permissions, pagesHost());
  expect(screen.getAllByRole("heading", { level: 2 }).map((one) => one.textContent)).toEqual(["Files", "Notes", "post, removed"]);
});

it("takes one back at once and offers an undo", async () => {
  const host = pagesHost();
  await openPage(Permissions, host);
  await userEvent.click(within(row("notes", "launch")).getByRole("button", { name: "Take back: Start on this computer" }));
  await settle();
  expect(host.callsOf("policy_revoke")).toEqual([{ id: "p4" }]);
  expect(rows()).toHaveLength(4);
  await userEvent.click(within(screen.getByTestId("toast")).getByRole("button", { name: "Undo" }));
  await settle();
  expect(host.callsOf("policy_restore")).toEqual([{ id: "p4" }]);
  expect(rows()).toHaveLength(5);
});

it("keeps the row when it could not be taken back", async () => {
  const host = pagesHost();
  host.answers.policy_revoke = () => {
    throw appError({ code: "storage.full", params: {} });
  };
  await openPage(Permissions, host);
  await userEvent.click(within(row("notes", "launch")).getByTestId("permission-revoke"));
  await settle();
  expect(rows()).toHaveLength(5);
  expect(screen.getByTestId("error").dataset.code).toBe("storage.full");
});

it("follows decisions made elsewhere", async () => {
  const host = pagesHost();
  await openPage(Permissions, host);
  host.answers.policy_list = () => policies.slice(0, 1);
  host.emit({ type: "policiesChanged" });
  await settle();
  expect(rows()).toHaveLength(1);
});

it("filters and searches, and says when nothing fits", async () => {
  await openPage(Permissions, pagesHost());
  await userEvent.click(screen.getByRole("button", { name: "Never 1" }));
  expect(rows()).toHaveLength(1);
  await userEvent.click(screen.getByRole("button", { name: "All 5" }));
  await userEvent.type(screen.getByRole("searchbox"), "document");
  expect(rows()).toHaveLength(1);
  await userEvent.type(screen.getByRole("searchbox"), "zzz");
  expect(screen.getByText("Nothing found")).toBeInTheDocument();
  await userEvent.keyboard("{Escape}");
  expect(rows()).toHaveLength(5);
});

it("says when it cannot be read, and reads again", async () => {
  const host = pagesHost();
  const answer = host.answers.policy_list!;
  host.answers.policy_list = () => {
    throw appError({ code: "internal", actions: [{ type: "retry" }] });
  };
  await openPage(Permissions, host);
  host.answers.policy_list = answer;
  await userEvent.click(screen.getByTestId("error-action"));
  await settle();
  expect(rows()).toHaveLength(5);
});
