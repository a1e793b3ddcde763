import { screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Snapshot } from "@/contract/index.ts";
import { appError, model, server } from "../../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../../tests/onePage.ts";
import { deepseek, pagesHost } from "../../../tests/pages.ts";
import Welcome from "./Welcome.svelte";

const begin = (over: Partial<Snapshot> = {}) => pagesHost({ servers: [server({ roots: [] })], ...over });
const next = () => userEvent.click(screen.getByTestId("welcome-next"));

describe.each(["en", "zh-CN"] as const)("the welcome in %s", (language) => {
  it("takes three steps, each accessible, and says at the end that it was seen", async () => {
    const host = begin();
    const { container, app } = await openPage(Welcome, host, { language });
    for (const step of ["1", "2", "3"]) {
      expect(screen.getByTestId("welcome").dataset.step).toBe(step);
      await expectAccessible(container);
      await next();
      await settle();
    }
    expect(host.callsOf("settings_change")).toEqual([{ change: { welcomed: true } }]);
    expect(app.page).toBe("chat");
  });
});

it("can be skipped at any step", async () => {
  const host = begin();
  await openPage(Welcome, host);
  await userEvent.click(screen.getByTestId("welcome-skip"));
  expect(host.callsOf("settings_change")).toEqual([{ change: { welcomed: true } }]);
});

it("moves the focus to each step's heading, and goes back", async () => {
  await openPage(Welcome, begin());
  await next();
  await settle();
  expect(screen.getByRole("heading", { name: "Choose a folder to start with" })).toHaveFocus();
  await userEvent.click(screen.getByTestId("welcome-back"));
  await settle();
  expect(screen.getByRole("heading", { name: "Welcome to Parley" })).toHaveFocus();
});

it("changes the language in the first step", async () => {
  const host = begin();
  await openPage(Welcome, host);
  await userEvent.click(screen.getByRole("radio", { name: "简体中文" }));
  expect(host.callsOf("settings_change")).toEqual([{ change: { language: "zh-CN" } }]);
});

it("stays and says why when it could not be kept that it was seen", async () => {
  const host = begin();
  host.answers.settings_change = () => {
    throw appError({ code: "storage.full", params: {}, actions: [{ type: "retry" }] });
  };
  await openPage(Welcome, host);
  await userEvent.click(screen.getByTestId("welcome-skip"));
  await settle();
  expect(screen.getByTestId("error").dataset.code).toBe("storage.full");
});

describe("the folder", () => {
  it("is picked, shown and taken back", async () => {
    const host = begin();
    await openPage(Welcome, host);
    await next();
    await userEvent.click(screen.getByRole("button", { name: "Choose a folder…" }));
    expect(host.callsOf("root_pick")).toEqual([{ server: "files" }]);
    host.emit({ type: "serverChanged", server: server({ roots: [{ path: "/home/mira/Documents/House", name: "House", missing: false }] }) });
    await settle();
    const folder = screen.getByTestId("folder");
    expect(folder.dataset.path).toBe("/home/mira/Documents/House");
    expect(folder).toHaveTextContent("Added");
    await userEvent.click(within(folder).getByRole("button", { name: "Take House back" }));
    expect(host.callsOf("root_remove")).toEqual([{ server: "files", path: "/home/mira/Documents/House" }]);
  });

  it("is written where there is no picker", async () => {
    const host = begin({ app: { version: "0.1.0", picksFolders: false } });
    await openPage(Welcome, host);
    await next();
    await userEvent.type(screen.getByTestId("folder-path"), "/home/mira/House");
    await userEvent.click(screen.getByTestId("folder-path-confirm"));
    expect(host.callsOf("root_add")).toEqual([{ server: "files", path: "/home/mira/House" }]);
  });

  it("says a refused one at its field", async () => {
    const host = begin({ app: { version: "0.1.0", picksFolders: false } });
    host.answers.root_add = () => {
      throw appError({ code: "folder.refused", params: { folder: "/" }, actions: [] });
    };
    await openPage(Welcome, host);
    await next();
    await userEvent.type(screen.getByTestId("folder-path"), "/{Enter}");
    await settle();
    expect(screen.getByTestId("folder-path")).toBeInvalid();
    expect(screen.getByTestId("folder-path")).toHaveValue("/");
  });

  it("says where what is read goes", async () => {
    await openPage(Welcome, begin({ models: { models: [deepseek], active: "deepseek" } }));
    await next();
    expect(screen.getByText("Your AI runs at api.deepseek.com. What it reads is sent there.")).toBeInTheDocument();
  });
});

describe("the model", () => {
  const third = async () => {
    await next();
    await next();
  };

  it("is honest about what a small one can do", async () => {
    await openPage(Welcome, begin());
    await third();
    expect(screen.getByText(/Longer tasks often go wrong/)).toBeInTheDocument();
    expect(screen.getByText("Ready")).toBeInTheDocument();
  });

  it("shows that it is getting ready", async () => {
    await openPage(Welcome, begin({ models: { models: [model({ onDevice: { state: "loading" } })], active: "qwen" } }));
    await third();
    expect(screen.getByRole("progressbar", { name: "Qwen 1.5B" })).toBeInTheDocument();
  });

  it("can be another one", async () => {
    const host = begin();
    const { app } = await openPage(Welcome, host);
    await third();
    await userEvent.click(screen.getByRole("button", { name: "Use another model" }));
    await settle();
    expect(host.callsOf("settings_change")).toEqual([{ change: { welcomed: true } }]);
    expect(app.page).toBe("models");
  });

  it("may be missing", async () => {
    await openPage(Welcome, begin({ models: { models: [], active: null } }));
    await third();
    expect(screen.getByText("No model yet")).toBeInTheDocument();
  });
});
