import { screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { AuditRow, SubjectKind } from "@/contract/index.ts";
import { setLanguage } from "@/i18n.svelte.ts";
import { fileTools } from "@/words/tools.ts";
import { appError } from "../../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../../tests/onePage.ts";
import { audit, auditRow, pagesHost } from "../../../tests/pages.ts";
import Activity from "./Activity.svelte";
import { outcomeText, sentence } from "./sentence.ts";

const rows = () => screen.getAllByTestId("activity");

describe.each(["en", "zh-CN"] as const)("the activity page in %s", (language) => {
  it("is accessible, full, opened and empty", async () => {
    const { container, unmount } = await openPage(Activity, pagesHost(), { language });
    await userEvent.click(within(rows()[0]!).getByRole("button"));
    await expectAccessible(container);
    unmount();
    const host = pagesHost();
    host.answers.audit_list = () => [];
    const empty = await openPage(Activity, host, { language });
    expect(screen.queryAllByTestId("activity")).toHaveLength(0);
    await expectAccessible(empty.container);
  });

  it("tells every kind of row, done or not, whole", () => {
    setLanguage(language);
    const kinds: SubjectKind[] = ["tool", "sampling", "sampling-reply", "form", "url", "launch", "connect", "sign-in", "folder"];
    for (const kind of kinds) {
      for (const outcome of ["allowed", "denied", "withdrawn", "expired", "turnStopped"] as const) {
        for (const object of ["x.txt", null]) {
          for (const tool of [...fileTools, "other", null]) {
            for (const actor of ["person", "policy", "app"] as const) {
              const row = auditRow({ kind, outcome, object, tool, actor });
              const told = sentence(row, "Files");
              for (const text of [told.title, told.below ?? "x", outcomeText(row)]) expect(text).not.toMatch(/^$|\{|undefined|null|activity\./);
            }
          }
        }
      }
    }
  });
});

describe("a row", () => {
  it("is a sentence about what happened", () => {
    expect(sentence(auditRow(), "Files")).toEqual({ title: "Files read “Offer Solvent.docx”", below: "Text given to Qwen 1.5B" });
    expect(sentence(auditRow({ tool: "trash_file", outcome: "denied", object: "Old" }), "Files")).toEqual({ title: "Files wanted to move “Old” to the trash", below: "Nothing was done" });
    expect(sentence(auditRow({ kind: "launch", tool: null, object: "npx", outcome: "denied" }), "Notes")).toEqual({ title: "Notes wanted to start on this computer", below: "It was not started" });
  });

  it("uses our words only for the connection we ship", () => {
    expect(sentence(auditRow({ server: "evil", tool: "read_file" }), "Evil").title).toBe("Evil used “read_file”");
  });

  it("carries its kind and outcome and says who decided", async () => {
    await openPage(Activity, pagesHost());
    expect(rows().map((one) => one.dataset.outcome)).toEqual(audit.map((row) => row.outcome));
    expect(rows()[3]!.dataset.kind).toBe("launch");
    expect(rows()[0]).toHaveTextContent("You allowed it");
    expect(rows()[1]).toHaveTextContent("Allowed by a standing answer");
    expect(rows()[2]).toHaveTextContent("You said never");
  });

  it("shows the tool's own name only when it is opened, and leads to its chat", async () => {
    const { app } = await openPage(Activity, pagesHost());
    expect(rows()[0]).not.toHaveTextContent("read_file");
    const button = within(rows()[0]!).getByRole("button");
    await userEvent.click(button);
    expect(button).toHaveAttribute("aria-expanded", "true");
    expect(rows()[0]).toHaveTextContent("read_file");
    expect(rows()[0]).toHaveTextContent("No. 1,204");
    await userEvent.click(within(rows()[0]!).getByRole("button", { name: "Open “Heating offers”" }));
    expect(app.page).toBe("chat");
    expect(app.conversation).toBe("c1");
  });
});

describe("the list", () => {
  it("asks the engine for what is searched once the writing rests", async () => {
    const host = pagesHost();
    await openPage(Activity, host);
    await userEvent.type(screen.getByTestId("activity-search"), "Brandt");
    await vi.waitFor(() => expect(rows()).toHaveLength(1));
    expect(host.callsOf("audit_list").map((one) => one.text)).toEqual([null, "Brandt"]);
    await userEvent.clear(screen.getByTestId("activity-search"));
    await userEvent.type(screen.getByTestId("activity-search"), "zzz");
    await vi.waitFor(() => expect(screen.getByText("Nothing found")).toBeInTheDocument());
  });

  it("shows only what was not allowed on demand", async () => {
    await openPage(Activity, pagesHost());
    await userEvent.click(screen.getByRole("button", { name: "Not allowed" }));
    expect(rows().every((one) => one.dataset.outcome !== "allowed")).toBe(true);
  });

  it("fetches earlier rows page by page, and keeps them when new ones come", async () => {
    const all: AuditRow[] = Array.from({ length: 150 }, (_, at) => auditRow({ id: 1000 - at, at: auditRow().at - at * 1000 }));
    const host = pagesHost();
    host.answers.audit_list = ({ before }) => all.filter((row) => before === null || row.id < before).slice(0, 100);
    await openPage(Activity, host);
    expect(rows()).toHaveLength(100);
    await userEvent.click(screen.getByText("Show earlier"));
    await settle();
    expect(rows()).toHaveLength(150);
    expect(screen.queryByText("Show earlier")).toBeNull();
    all.unshift(auditRow({ id: 1001 }));
    host.emit({ type: "auditChanged" });
    await settle();
    expect(rows()).toHaveLength(151);
  });

  it("says when it cannot be read, and reads again", async () => {
    const host = pagesHost();
    const answer = host.answers.audit_list!;
    host.answers.audit_list = () => {
      throw appError({ code: "storage.broken", params: {}, actions: [{ type: "retry" }] });
    };
    await openPage(Activity, host);
    expect(screen.getByTestId("error").dataset.code).toBe("storage.broken");
    host.answers.audit_list = answer;
    await userEvent.click(screen.getByTestId("error-action"));
    await settle();
    expect(rows()).toHaveLength(audit.length);
  });
});
