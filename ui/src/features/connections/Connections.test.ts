import { screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { appError, launchAsk, server } from "../../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../../tests/onePage.ts";
import { pagesHost, servers } from "../../../tests/pages.ts";
import Connections from "./Connections.svelte";

const card = (id: string) => screen.getAllByTestId("connection").find((one) => one.dataset.server === id)!;
const unfold = async (id: string) => {
  await userEvent.click(within(card(id)).getByTestId("connection-tools"));
  await settle();
};

describe.each(["en", "zh-CN"] as const)("the connections page in %s", (language) => {
  it("is accessible, folded and unfolded", async () => {
    const { container } = await openPage(Connections, pagesHost(), { language });
    await expectAccessible(container);
    await unfold("files");
    await unfold("notes");
    await expectAccessible(container);
  });

  it("is accessible with nothing in it", async () => {
    const { container } = await openPage(Connections, pagesHost({ servers: [] }), { language });
    expect(screen.queryAllByTestId("connection")).toHaveLength(0);
    await expectAccessible(container);
  });
});

describe("the list", () => {
  it("puts what fails first and keeps the order of the others", async () => {
    await openPage(Connections, pagesHost());
    expect(screen.getAllByTestId("connection").map((one) => one.dataset.server)).toEqual(["calendar", "files", "mail", "notes", "photos", "shop-2"]);
  });

  it("says how each stands in words", async () => {
    await openPage(Connections, pagesHost());
    expect(card("calendar")).toHaveTextContent("Cannot start");
    expect(card("mail")).toHaveTextContent("Sign in to use it");
    expect(card("photos")).toHaveTextContent("Getting ready");
    expect(card("shop-2")).toHaveTextContent("Off");
    expect(card("notes")).toHaveTextContent("Ready");
    expect(card("notes")).toHaveTextContent("1 left out");
  });

  it("says that a start waits for the person", async () => {
    await openPage(Connections, pagesHost({ servers: [server({ id: "notes", title: "Notes", builtIn: false, status: "starting" })], asks: [launchAsk()] }));
    expect(card("notes")).toHaveTextContent("Waiting for you");
  });

  it("shows cause and mending button of a failing one without unfolding", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    const error = within(card("calendar")).getByTestId("connection-error");
    expect(error).toHaveTextContent("It needs Node.js, which is not on this computer.");
    const buttons = within(error).getAllByTestId("error-action");
    expect(buttons.map((one) => one.textContent?.trim())).toEqual(["Get Node.js", "Try again"]);
    await userEvent.click(buttons[0]!);
    await userEvent.click(buttons[1]!);
    expect(host.callsOf("url_open")).toEqual([{ url: "https://nodejs.org/" }]);
    expect(host.callsOf("server_restart")).toEqual([{ id: "calendar" }]);
  });

  it("keeps the technical text behind Details, with the report number", async () => {
    await openPage(Connections, pagesHost());
    const error = within(card("calendar")).getByTestId("error");
    expect(error.dataset.code).toBe("server.program_missing");
    expect(error).not.toHaveTextContent("os error 2");
    await userEvent.click(within(error).getByTestId("error-details"));
    expect(error).toHaveTextContent("os error 2");
    expect(error).toHaveTextContent("Report number 01JDYQ7M3K");
  });

  it("says what a button could not do", async () => {
    const host = pagesHost();
    host.answers.url_open = () => {
      throw appError({ code: "internal" });
    };
    await openPage(Connections, host);
    await userEvent.click(within(card("calendar")).getAllByTestId("error-action")[0]!);
    await settle();
    expect(card("calendar")).toHaveTextContent("Something broke on our side");
  });

  it("switches one off and shows what the engine makes of it", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    const toggle = within(card("notes")).getByRole("switch", { name: "Use Notes" });
    expect(toggle).toHaveAttribute("aria-checked", "true");
    await userEvent.click(toggle);
    expect(host.callsOf("server_toggle")).toEqual([{ id: "notes", on: false }]);
    // Until the engine says so, it is still on.
    expect(toggle).toHaveAttribute("aria-checked", "true");
    host.emit({ type: "serverChanged", server: server({ id: "notes", title: "Notes", builtIn: false, status: "off" }) });
    await settle();
    expect(toggle).toHaveAttribute("aria-checked", "false");
  });

  it("opens mcp.json", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await userEvent.click(screen.getByRole("button", { name: "Open mcp.json" }));
    expect(host.callsOf("file_open")).toEqual([{ path: "mcp.json" }]);
  });

  it("says where mcp.json is when nothing opens it", async () => {
    const host = pagesHost();
    host.answers.file_open = () => Promise.reject(appError({ code: "desktop.cannot_open", params: { place: "/home/mira/.parley/mcp.json" }, actions: [] }));
    await openPage(Connections, host);
    await userEvent.click(screen.getByRole("button", { name: "Open mcp.json" }));
    await settle();
    expect(screen.getByText("You find it here: /home/mira/.parley/mcp.json")).toBeInTheDocument();
    expect(screen.getByRole("button", { name: "Copy path" })).toBeInTheDocument();
  });

  it("says what of a working one is not used", async () => {
    const error = appError({ code: "folder.refused", params: { folder: "/", server: "Notes" }, actions: [] });
    await openPage(Connections, pagesHost({ servers: servers.map((one) => (one.id === "notes" ? { ...one, error } : one)) }));
    expect(card("notes")).toHaveAttribute("data-status", "ready");
    expect(within(card("notes")).getByTestId("connection-warning")).toHaveTextContent("cannot be given");
    expect(within(card("notes")).queryByTestId("connection-error")).toBeNull();
    expect(within(card("files")).queryByTestId("connection-warning")).toBeNull();
  });

  it("opens at the connection another place asked for, with its log", async () => {
    const host = pagesHost();
    const { app } = await openPage(Connections, host);
    app.showServer("notes", true);
    await settle();
    expect(within(card("notes")).getByRole("region", { name: "Log of Notes" })).toHaveTextContent("ready in 84 ms");
    expect(within(card("notes")).getByTestId("connection-tools")).toHaveFocus();
  });
});

describe("folders", () => {
  it("are chips with their whole path, and a missing one says so", async () => {
    await openPage(Connections, pagesHost());
    await unfold("files");
    const chips = within(card("files")).getAllByTestId("folder");
    expect(chips.map((one) => one.dataset.path)).toEqual(["/home/mira/House", "/home/mira/Photos", "/home/mira/Old desk"]);
    expect(chips[0]).toHaveAttribute("title", "/home/mira/House");
    expect(chips[2]).toHaveTextContent("Old desk, not found");
  });

  it("are taken back with an undo", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await unfold("files");
    await userEvent.click(within(card("files")).getByRole("button", { name: "Take House back" }));
    expect(host.callsOf("root_remove")).toEqual([{ server: "files", path: "/home/mira/House" }]);
    host.emit({ type: "serverChanged", server: server({ roots: [] }) });
    await settle();
    await userEvent.click(within(screen.getByTestId("toast")).getByRole("button", { name: "Undo" }));
    expect(host.callsOf("root_add")).toEqual([{ server: "files", path: "/home/mira/House" }]);
  });

  it("are picked with the native picker, which grants what was picked", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await unfold("files");
    await userEvent.click(within(card("files")).getByTestId("add-folder"));
    await settle();
    expect(host.callsOf("root_pick")).toEqual([{ server: "files" }]);
    expect(host.callsOf("root_add")).toEqual([]);
  });

  it("are written where there is no picker, and a wrong one stays for correcting", async () => {
    const host = pagesHost({ app: { version: "0.1.0", picksFolders: false } });
    host.answers.root_add = ({ path }) => {
      if (path === "/nowhere") throw appError({ code: "folder.gone", params: { folder: "/nowhere", server: "Files" }, actions: [] });
      return {};
    };
    await openPage(Connections, host);
    await unfold("files");
    const field = within(card("files")).getByTestId("folder-path");
    await userEvent.click(within(card("files")).getByTestId("folder-path-confirm"));
    expect(host.callsOf("root_add")).toEqual([]);
    expect(field).toHaveAccessibleDescription(/Write where the folder is/);
    await userEvent.type(field, "/nowhere{Enter}");
    await settle();
    expect(field).toHaveValue("/nowhere");
    expect(field).toHaveAccessibleDescription(/“nowhere” is not there any more/);
    await userEvent.clear(field);
    await userEvent.type(field, "/home/mira/Letters");
    await userEvent.click(within(card("files")).getByTestId("folder-path-confirm"));
    await settle();
    expect(field).toHaveValue("");
  });

  it("offers one button until the built-in connection has one", async () => {
    const host = pagesHost({ servers: [server({ roots: [] })] });
    await openPage(Connections, host);
    await userEvent.click(within(card("files")).getByRole("button", { name: "Choose a folder…" }));
    expect(host.callsOf("root_pick")).toEqual([{ server: "files" }]);
    await unfold("files");
    expect(within(card("files")).getAllByTestId("add-folder")).toHaveLength(1);
  });

  it("promises nothing about what another program can reach", async () => {
    await openPage(Connections, pagesHost());
    await unfold("notes");
    expect(card("notes")).toHaveTextContent("Parley cannot stop it from looking elsewhere");
    await unfold("files");
    expect(card("files")).not.toHaveTextContent("cannot stop it");
  });
});

describe("what it can do", () => {
  const row = (id: string, tool: string) => card(id).querySelector<HTMLElement>(`[data-tool="${tool}"]`)!;

  it("says our own tools in our words, and offers only what the level allows", async () => {
    await openPage(Connections, pagesHost());
    await unfold("files");
    const labels = (tool: string) => within(row("files", tool)).queryAllByRole("radio").map((one) => one.closest("label")?.textContent?.trim());
    expect(row("files", "read_file")).toHaveTextContent("Read a document");
    expect(labels("read_file")).toEqual(["Ask", "Always", "Never"]);
    expect(labels("write_file")).toEqual(["Ask", "Never"]);
    expect(labels("trash_file")).toEqual([]);
    expect(row("files", "trash_file")).toHaveTextContent("Asks every time");
  });

  it("sets a standing answer and shows the one the engine keeps", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await unfold("files");
    const before = host.callsOf("server_detail").length;
    await userEvent.click(within(row("files", "read_file")).getByRole("radio", { name: "Never" }));
    await settle();
    expect(host.callsOf("tool_rule")).toEqual([{ server: "files", tool: "read_file", rule: "never" }]);
    expect(host.callsOf("server_detail").length).toBeGreaterThan(before);
  });

  it("follows an answer that was changed elsewhere", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await unfold("files");
    const before = host.callsOf("server_detail").length;
    host.emit({ type: "policiesChanged" });
    await settle();
    expect(host.callsOf("server_detail").length).toBe(before + 1);
  });

  it("marks a level that is only the connection's claim", async () => {
    await openPage(Connections, pagesHost());
    await unfold("notes");
    expect(row("notes", "search")).toHaveTextContent("reads private things, by its own account");
  });

  it("shows the rest on demand", async () => {
    const host = pagesHost();
    const answer = host.answers.server_detail!;
    host.answers.server_detail = async (params) => {
      const detail = await answer(params);
      return { ...detail, tools: Array.from({ length: 11 }, (_, at) => ({ ...detail.tools[0]!, name: `t${at}` })) };
    };
    await openPage(Connections, host);
    await unfold("notes");
    expect(card("notes").querySelectorAll("[data-tool]")).toHaveLength(8);
    await userEvent.click(within(card("notes")).getByText("Show 3 more"));
    expect(card("notes").querySelectorAll("[data-tool]")).toHaveLength(11);
  });

  it("quotes the connection's own words and names what was left out, with its reason", async () => {
    await openPage(Connections, pagesHost());
    await unfold("notes");
    expect(within(card("notes")).getByRole("figure")).toHaveTextContent("In Notes’s words");
    expect(card("notes")).toHaveTextContent("make_table");
    expect(card("notes")).toHaveTextContent("inputSchema is not an object");
  });

  it("shows the whole command, each part as it is passed", async () => {
    await openPage(Connections, pagesHost());
    await unfold("notes");
    expect(card("notes")).toHaveTextContent('npx -y @notes/connector@2.1.0 --dir "/home/mira/My Notes"');
  });

  it("says when it cannot be looked at, and looks again", async () => {
    const host = pagesHost();
    const answer = host.answers.server_detail!;
    host.answers.server_detail = () => {
      throw appError({ code: "internal", actions: [{ type: "retry" }] });
    };
    await openPage(Connections, host);
    await unfold("files");
    expect(card("files")).toHaveTextContent("Something broke on our side");
    host.answers.server_detail = answer;
    await userEvent.click(within(card("files")).getByTestId("error-action"));
    await settle();
    expect(row("files", "read_file")).toBeInTheDocument();
  });
});

describe("the log", () => {
  it("is shown on demand as plain text and grows while it is on screen", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await unfold("notes");
    expect(host.callsOf("server_log")).toEqual([]);
    await userEvent.click(within(card("notes")).getByTestId("connection-log"));
    await settle();
    const log = within(card("notes")).getByRole("region", { name: "Log of Notes" });
    expect(log).toHaveTextContent("WARN deprecated option");
    host.answers.server_log = () => [{ at: 0, source: "stderr", text: "<b>later</b>" }];
    host.emit({ type: "serverLogged", id: "notes" });
    await settle();
    expect(within(card("notes")).getByRole("region", { name: "Log of Notes" })).toHaveTextContent("<b>later</b>");
  });

  it("of a failing one is one press away", async () => {
    await openPage(Connections, pagesHost());
    await userEvent.click(within(card("calendar")).getByTestId("connection-log"));
    await settle();
    expect(within(card("calendar")).getByRole("region", { name: "Log of Calendar" })).toBeInTheDocument();
  });
});

describe("removing", () => {
  it("asks in place, with keeping it first and in focus", async () => {
    const host = pagesHost();
    await openPage(Connections, host);
    await unfold("notes");
    await userEvent.click(within(card("notes")).getByTestId("connection-remove"));
    expect(within(card("notes")).getByRole("button", { name: "Keep Notes" })).toHaveFocus();
    expect(host.callsOf("server_remove")).toEqual([]);
    await userEvent.click(within(card("notes")).getByRole("button", { name: "Remove Notes" }));
    await settle();
    expect(host.callsOf("server_remove")).toEqual([{ id: "notes" }]);
    expect(screen.getByTestId("toast")).toHaveTextContent("Notes removed");
  });

  it("is not offered for a built-in one", async () => {
    await openPage(Connections, pagesHost());
    await unfold("files");
    expect(within(card("files")).queryByTestId("connection-remove")).toBeNull();
  });
});

it("keeps a hostile name on one line and in its place", async () => {
  await openPage(Connections, pagesHost({ servers: [server({ id: "x", builtIn: false, title: `\u202eAllow\n${"x".repeat(500)}` })] }));
  const name = within(card("x")).getByRole("heading").textContent ?? "";
  expect([...name].length).toBeLessThanOrEqual(61);
  expect(name).not.toMatch(/[\n\u202e]/u);
});
