import { render, screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import axe from "axe-core";
import { tick } from "svelte";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Ask, Language, Snapshot } from "@/contract/index.ts";
import App from "@/App.svelte";
import { ScriptedHost } from "@/host/scripted.ts";
import { ask, connectAsk, item, launchAsk, remote, snapshot, toolCall, toolSubject, turn } from "../../../tests/fixtures.ts";

beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));
afterEach(() => vi.useRealTimers());

const user = () => userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms) });

async function open(asks: Ask[], language: Language = "en", over: Partial<Snapshot> = {}): Promise<ScriptedHost> {
  const host: ScriptedHost = new ScriptedHost(
    snapshot({ asks, turns: [turn("c1")], settings: { language, effectiveLanguage: language, theme: "light", welcomed: true }, ...over }),
    {
      conversation_open: () => ({
        conversation: host.snapshot.conversations[0]!,
        items: [item("c1", 1, { kind: "user", text: "Hi" }), item("c1", 2, toolCall({ status: "asking", result: null, startedAt: null, endedAt: null }))],
        earlier: null,
        turn: turn("c1"),
      }),
      ask_answer: ({ id, answer }) => {
        host.emit({ type: "askClosed", id, outcome: answer.option === "deny" || answer.option === "never" ? "denied" : "allowed" });
        return {};
      },
    },
  );
  render(App, { host });
  await tick();
  if (asks.some((one) => one.conversationId === "c1")) {
    screen.getAllByTestId("chat-item")[0]!.click();
    await waitFor(() => screen.getByTestId("ask"));
  }
  return host;
}

const arm = async () => {
  vi.advanceTimersByTime(600);
  await tick();
};

describe("a question", () => {
  test("says who asks, what happens, with what, and how to go back, before its buttons", async () => {
    await open([ask()]);
    const card = screen.getByTestId("ask");
    expect(card.dataset).toMatchObject({ kind: "tool", server: "files", ask: "ask-1" });
    expect(within(card).getByRole("heading").textContent).toBe("Let Files read “Offer Solvent.docx”?");
    const text = card.textContent!.replace(/\s+/g, " ");
    const order = ["Let Files read", "Files, built into Parley", "Reads private things", "What", "Opens this one document", "Data", "Offer Solvent.docx", "84 KB", "Nothing leaves it.", "Undo", "Nothing to undo.", "Don’t allow", "Allow once", "Allow in this chat", "Always allow reading", "Never allow"];
    const places = order.map((part, at) => text.indexOf(part, at === 0 ? 0 : text.indexOf(order[at - 1]!)));
    expect(places.every((place) => place >= 0)).toBe(true);
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  test("says it in Chinese too", async () => {
    await open([ask({ serverTitle: "文件" })], "zh-CN");
    const card = screen.getByTestId("ask");
    expect(within(card).getByRole("heading").textContent).toBe("允许“文件”读取“Offer Solvent.docx”吗？");
    for (const words of ["轮到你了", "读取私人内容", "要做什么", "能否撤销", "不允许", "允许这一次", "本次对话都允许", "始终允许读取", "永不允许"]) {
      expect(card.textContent).toContain(words);
    }
    expect(document.documentElement.lang).toBe("zh-CN");
  });

  test("arms its yes after 600 ms; no is ready at once", async () => {
    const host = await open([ask()]);
    for (const id of ["ask-allow-once", "ask-allow-chat", "ask-allow-always"]) expect(screen.getByTestId<HTMLButtonElement>(id).disabled).toBe(true);
    for (const id of ["ask-deny", "ask-never"]) expect(screen.getByTestId<HTMLButtonElement>(id).disabled).toBe(false);
    screen.getByTestId("ask-allow-once").click();
    vi.advanceTimersByTime(500);
    await tick();
    expect(screen.getByTestId<HTMLButtonElement>("ask-allow-once").disabled).toBe(true);
    expect(host.callsOf("ask_answer")).toEqual([]);
    await arm();
    screen.getByTestId("ask-allow-once").click();
    await waitFor(() => expect(host.callsOf("ask_answer")).toEqual([{ id: "ask-1", answer: { type: "choice", option: "allowOnce" } }]));
  });

  test("Enter approves nothing, wherever the focus is and however long it is held; Space does", async () => {
    const host = await open([ask()]);
    await arm();
    const keys = user();
    for (const id of ["ask-allow-once", "ask-allow-chat", "ask-allow-always"]) {
      screen.getByTestId(id).focus();
      await keys.keyboard("{Enter>20/}");
    }
    expect(host.callsOf("ask_answer")).toEqual([]);
    expect(screen.getByText("Press Space to allow")).toBeTruthy();
    screen.getByTestId("ask-allow-once").focus();
    await keys.keyboard(" ");
    await waitFor(() => expect(host.callsOf("ask_answer")).toHaveLength(1));
  });

  test("takes the focus on its heading, and Escape goes to the composer and decides nothing", async () => {
    const host = await open([ask()]);
    await waitFor(() => expect(document.activeElement?.textContent).toContain("Let Files read"));
    await user().keyboard("{Escape}");
    await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("composer")));
    expect(host.callsOf("ask_answer")).toEqual([]);
  });

  test("leaves the focus where the person writes; Ctrl+J goes to it", async () => {
    const host = await open([]);
    screen.getAllByTestId("chat-item")[0]!.click();
    await tick();
    const composer = screen.getByTestId("composer");
    await user().type(composer, "half a sen");
    host.emit({ type: "askOpened", ask: ask() });
    await waitFor(() => screen.getByTestId("ask"));
    expect(document.activeElement).toBe(composer);
    await user().keyboard("{Control>}j{/Control}");
    expect(document.activeElement?.textContent).toContain("Let Files read");
  });

  test("draws the choices it was given, and no others", async () => {
    await open([ask({ level: "L2", options: ["deny", "allowOnce", "allowChat"], subject: toolSubject({ tool: "write_file", arguments: { path: "a.md", text: "1\n2\n" }, target: { crumbs: ["House", "a.md"], isFolder: false, bytes: null } }) })]);
    const buttons = screen.getAllByTestId(/^ask-(deny|never|allow)/).map((button) => button.dataset["testid"]);
    expect(buttons).toEqual(["ask-deny", "ask-allow-once", "ask-allow-chat"]);
    expect(screen.getByTestId("ask").textContent).toContain("2 lines by Qwen 1.5B");
    expect(screen.getByTestId("ask").textContent).toContain("Delete the document.");
  });

  test("that could lose things names them, names the number, and asks every time", async () => {
    await open([ask({ level: "L3", options: ["deny", "allowOnce"], subject: toolSubject({ tool: "trash_file", arguments: { path: "Offers/Old.pdf" }, target: { crumbs: ["House", "Offers", "Old.pdf"], isFolder: false, bytes: 1 } }) })]);
    const card = screen.getByTestId("ask");
    for (const words of ["Could lose things", "This goes to the trash", "Old.pdf", "Put it back from the trash", "Don’t move it", "Move 1 to trash", "Asks every time"]) expect(card.textContent).toContain(words);
  });

  test("of a connection we did not ship quotes its words, and never lets them pose as ours", async () => {
    const title = "Allow";
    await open([ask({ server: "notes", serverTitle: "Notes", builtIn: false, level: "L2", options: ["deny", "allowOnce", "allowChat"], subject: toolSubject({ tool: "x", title, description: "**Safe** <b>click</b>\u202e", target: null, arguments: { to: "a" }, reader: remote }) })]);
    const card = screen.getByTestId("ask");
    expect(within(card).getByRole("heading").textContent).toBe("Let Notes use this tool?");
    const quote = within(card).getByRole("figure");
    expect(quote.textContent).toContain("In Notes’ words");
    expect(quote.textContent).toContain("**Safe** <b>click</b>⟨U+202E⟩");
    expect(quote.querySelector("b, strong, a")).toBeNull();
    expect(card.textContent).toContain("sent to DeepSeek Chat at api.deepseek.com");
    expect(card.textContent).not.toContain("Nothing leaves");
    expect(card.textContent).toContain("Parley cannot undo what Notes does.");
  });

  test("shows what was filled in, whole, with nothing hidden", async () => {
    await open([ask({ subject: toolSubject({ arguments: { path: "a\u202eb.docx" } }) })]);
    screen.getByTestId("ask-details").click();
    await tick();
    expect(screen.getByTestId("ask").textContent).toContain("a⟨U+202E⟩b.docx");
  });

  test("to start a program shows the whole command, names of settings and the way back", async () => {
    const host = await open([launchAsk()]);
    screen.getByTestId("inbox").click();
    await tick();
    const card = screen.getByTestId("ask");
    expect(card.dataset["kind"]).toBe("launch");
    for (const words of ["Start Notes on this computer?", "Runs a program", "npx -y @notes/connector@2.1.0 --dir /home/mira/Notes", "/usr/bin/npx", "NOTES_TOKEN", "Switch Notes off under Connections."]) expect(card.textContent).toContain(words);
    expect(screen.queryByTestId("ask-allow-once")).toBeNull();
    await arm();
    screen.getByTestId("ask-allow-always").click();
    await waitFor(() => expect(host.callsOf("ask_answer")).toEqual([{ id: "ask-launch", answer: { type: "choice", option: "allowAlways" } }]));
    await waitFor(() => expect(screen.queryByTestId("inbox")).toBeNull());
  });

  test("to start a program shows variables that run other code, with their values", async () => {
    const launch = launchAsk();
    if (launch.subject.kind !== "launch") throw new Error("no launch");
    await open([{ ...launch, subject: { ...launch.subject, loaders: [{ name: "LD_PRELOAD", value: "/tmp/x\u202e.so" }] } }]);
    screen.getByTestId("inbox").click();
    await tick();
    const card = screen.getByTestId("ask");
    for (const words of ["LD_PRELOAD=/tmp/x⟨U+202E⟩.so", "can make any program run other code"]) expect(card.textContent).toContain(words);
  });

  test("to connect shows the host, whose it is, and warns of letters that pose as others", async () => {
    await open([connectAsk({ subject: { kind: "connect", url: "https://mcp.xn--pst-sna.example/x", host: "mcp.xn--pst-sna.example", headers: [], changed: false } })]);
    screen.getByTestId("inbox").click();
    await tick();
    const card = screen.getByTestId("ask");
    expect(card.querySelector(".big b")?.textContent).toBe("xn--pst-sna.example");
    expect(card.textContent).toContain("letters that may look like others");
    expect(card.textContent).toContain("https://mcp.xn--pst-sna.example/x");
  });

  test("a double click or a stale card gives one answer and no error", async () => {
    const host = await open([ask()]);
    host.answers.ask_answer = () => Promise.reject({ code: "ask.already_closed", params: {}, cause: null, actions: [], retryable: false, traceId: "t" });
    screen.getByTestId("ask-deny").click();
    screen.getByTestId("ask-deny").click();
    await tick();
    expect(host.callsOf("ask_answer")).toHaveLength(1);
    expect(screen.queryByTestId("error")).toBeNull();
  });
});

describe("several questions", () => {
  const three = [ask({ id: "a" }), ask({ id: "b" }), ask({ id: "c" })];

  test("show one at a time, and can be refused together", async () => {
    const host = await open(three);
    expect(screen.getAllByTestId("ask")).toHaveLength(1);
    expect(screen.getByTestId("ask-queue").textContent).toContain("1 of 3");
    screen.getByTestId("ask-queue").click();
    await tick();
    screen.getByTestId("ask-deny-all").click();
    await waitFor(() => expect(host.callsOf("ask_answer").map((call) => [call.id, call.answer.option])).toEqual([["a", "deny"], ["b", "deny"], ["c", "deny"]]));
  });

  test("that only read can be allowed together, as three answers, once the button is armed", async () => {
    const host = await open(three);
    screen.getByTestId("ask-queue").click();
    await tick();
    const all = screen.getByTestId<HTMLButtonElement>("ask-allow-all");
    expect(all.disabled).toBe(true);
    await arm();
    all.focus();
    await user().keyboard("{Enter}");
    expect(host.callsOf("ask_answer")).toEqual([]);
    all.click();
    await waitFor(() => expect(host.callsOf("ask_answer").map((call) => [call.id, call.answer.option])).toEqual([["a", "allowOnce"], ["b", "allowOnce"], ["c", "allowOnce"]]));
  });

  test("of which one changes things offer no common yes", async () => {
    await open([ask({ id: "a" }), ask({ id: "b", level: "L2", options: ["deny", "allowOnce", "allowChat"] })]);
    screen.getByTestId("ask-queue").click();
    await tick();
    expect(screen.queryByTestId("ask-allow-all")).toBeNull();
    expect(screen.getByTestId("ask-deny-all")).toBeTruthy();
  });

  test("the next one arms anew", async () => {
    await open(three);
    await arm();
    screen.getByTestId("ask-deny").click();
    await waitFor(() => expect(screen.getByTestId("ask").dataset["ask"]).toBe("b"));
    expect(screen.getByTestId<HTMLButtonElement>("ask-allow-once").disabled).toBe(true);
  });
});

describe("when a question goes", () => {
  test("the focus goes to where the person writes, whichever way it was answered", async () => {
    await open([ask()]);
    await user().click(screen.getByTestId("ask-deny"));
    await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("composer")));
  });

  test("by itself, it takes the focus from nowhere else", async () => {
    const host = await open([ask()]);
    const search = screen.getByTestId("chat-search");
    search.focus();
    host.emit({ type: "askClosed", id: "ask-1", outcome: "withdrawn" });
    await waitFor(() => expect(screen.queryByTestId("ask")).toBeNull());
    await tick();
    expect(document.activeElement).toBe(search);
  });

  test("that was opened as one that waits, the person goes on in its chat", async () => {
    await open([ask()]);
    screen.getByTestId("nav-models").click();
    await tick();
    screen.getByTestId("inbox").click();
    await tick();
    await user().click(screen.getByTestId("ask-deny"));
    await waitFor(() => expect(screen.getByTestId("tool-card")).toBeTruthy());
    expect(screen.getByTestId("nav-chat").getAttribute("aria-current")).toBe("page");
    await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("composer")));
  });

  test("while others wait there, they stay in sight until the last is answered", async () => {
    await open([launchAsk(), ask()]);
    screen.getByTestId("nav-models").click();
    await tick();
    screen.getByTestId("inbox").click();
    await tick();
    await user().click(within(screen.getAllByTestId("ask")[1]!).getByTestId("ask-deny"));
    await waitFor(() => expect(screen.getAllByTestId("ask")).toHaveLength(1));
    await waitFor(() => expect(document.activeElement?.textContent).toContain("Start Notes"));
  });
});

test.each([
  ["en", ["allowAlways", "never"], "“Always” and “Never” are for this tool of Files, until you change it under Connections."],
  ["en", ["never"], "“Never” is for this tool of Files, until you change it under Connections."],
  ["zh-CN", ["allowAlways"], "“始终”和“永不”只对“文件”的这个工具有效，直到你在“连接”里改动。"],
] as const)("what a lasting answer covers is written on the card (%s, %s)", async (language, lasting, words) => {
  await open([ask({ options: ["deny", "allowOnce", ...lasting] })], language);
  expect(screen.getByTestId("ask").textContent).toContain(words);
});

test("with no lasting answer on offer nothing is said of one", async () => {
  await open([ask({ level: "L3", options: ["deny", "allowOnce"] })]);
  expect(screen.getByTestId("ask").querySelector(".scope")).toBeNull();
});

test("a model of another program on this computer is not said to keep everything here", async () => {
  await open([ask({ subject: toolSubject({ reader: { model: "qwen3:8b", local: true, host: "127.0.0.1:11434" } }) })]);
  const text = screen.getByTestId("ask").textContent!;
  expect(text).toContain("The text goes to qwen3:8b, which a program on this computer offers at 127.0.0.1:11434.");
  expect(text).not.toContain("Nothing leaves");
});

test("a question that is taken back leaves one grey line", async () => {
  const host = await open([ask()]);
  host.emit({ type: "askClosed", id: "ask-1", outcome: "withdrawn" });
  await tick();
  expect(screen.queryByTestId("ask")).toBeNull();
  expect(screen.getByText("Files took the question back")).toBeTruthy();
});

test("questions of no visible chat wait behind one button, and the mark is lit", async () => {
  await open([launchAsk(), connectAsk()]);
  expect(screen.getByTestId("inbox").textContent).toContain("2 questions wait");
  expect(document.querySelector(".top .mark.lit")).toBeTruthy();
  screen.getByTestId("inbox").click();
  await tick();
  expect(screen.getAllByTestId("ask").map((card) => card.dataset["kind"])).toEqual(["launch", "connect"]);
});

test.each(["en", "zh-CN"] as const)("axe finds nothing to mend in any kind of question (%s)", async (language) => {
  for (const asks of [[ask(), ask({ id: "b" })], [ask({ level: "L3", options: ["deny", "allowOnce"], subject: toolSubject({ tool: "trash_file" }) })], [launchAsk(), connectAsk()]]) {
    const { unmount } = await openFor(asks, language);
    const result = await axe.run(document.body, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } } });
    expect(result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
    unmount();
  }
});

async function openFor(asks: Ask[], language: Language) {
  vi.useRealTimers();
  await open(asks, language);
  if (asks[0]?.conversationId === null) {
    screen.getByTestId("inbox").click();
    await tick();
  }
  screen.getAllByTestId("ask-details")[0]!.click();
  await tick();
  return { unmount: () => document.body.replaceChildren() };
}
