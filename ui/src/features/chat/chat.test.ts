import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import axe from "axe-core";
import { tick } from "svelte";
import { describe, expect, test, vi } from "vitest";
import type { Item, Language, Snapshot } from "@/contract/index.ts";
import App from "@/App.svelte";
import { ScriptedHost } from "@/host/scripted.ts";
import { appError, conversation, item, model, server, snapshot, toolCall, turn } from "../../../tests/fixtures.ts";
import { stepWords } from "./stepWords.ts";

const said = (ordinal: number, text: string, status: Item["status"] = "complete") => item("c1", ordinal, { kind: "assistant", text, model: "x" }, status);
const asked = item("c1", 1, { kind: "user", text: "Hello" });

async function open(items: Item[] | null, over: Partial<Snapshot> = {}, language: Language = "en"): Promise<ScriptedHost> {
  const host: ScriptedHost = new ScriptedHost(
    snapshot({ settings: { language, effectiveLanguage: language, theme: "light", welcomed: true }, ...over }),
    {
      conversation_open: ({ id }) => ({ conversation: conversation(id, "Heating offers"), items: items ?? [], earlier: null, turn: host.snapshot.turns.find((one) => one.conversationId === id) ?? null }),
      conversation_create: () => conversation("new", ""),
      turn_start: () => "turn-new",
      turn_retry: () => "turn-again",
      conversation_search: () => [],
      policy_list: () => [],
      audit_list: () => [],
    },
  );
  render(App, { host });
  await tick();
  if (items) {
    screen.getAllByTestId("chat-item")[0]!.click();
    await waitFor(() => screen.getAllByTestId("message"));
  }
  return host;
}

test("what stood in the window at the start is gone once the first screen is there", async () => {
  const start = document.createElement("div");
  start.id = "start";
  document.body.append(start);
  await open(null);
  expect(screen.getByTestId("composer")).toBeTruthy();
  expect(document.getElementById("start")).toBeNull();
});

describe("the composer", () => {
  test("sends on Enter: a new chat is made with the first message, and the text goes", async () => {
    const host = await open(null);
    const composer = screen.getByTestId<HTMLTextAreaElement>("composer");
    expect(screen.getByTestId<HTMLButtonElement>("send").disabled).toBe(true);
    await userEvent.type(composer, "First line{Shift>}{Enter}{/Shift}second");
    expect(host.callsOf("turn_start")).toEqual([]);
    await userEvent.type(composer, "{Enter}");
    await waitFor(() => expect(host.callsOf("turn_start")).toEqual([{ conversationId: "new", text: "First line\nsecond" }]));
    expect(composer.value).toBe("");
  });

  test("leaves the Enter that ends a composition to the input method, in the order of either engine", async () => {
    const host = await open(null);
    const composer = screen.getByTestId<HTMLTextAreaElement>("composer");
    await userEvent.type(composer, "你好");
    await fireEvent.keyDown(composer, { key: "Enter", isComposing: true, keyCode: 229 });
    await fireEvent.compositionEnd(composer);
    // WebKit: the composition is over by now, only the old code tells.
    await fireEvent.keyDown(composer, { key: "Enter", isComposing: false, keyCode: 229 });
    expect(host.callsOf("turn_start")).toEqual([]);
    await fireEvent.keyDown(composer, { key: "Enter", isComposing: false, keyCode: 13 });
    await waitFor(() => expect(host.callsOf("turn_start")).toEqual([{ conversationId: "new", text: "你好" }]));
  });

  test("keeps the text when the engine did not take it, and says why", async () => {
    const host = await open(null);
    host.answers.turn_start = () => Promise.reject(appError({ code: "model.none", actions: [{ type: "openPage", page: "models" }] }));
    const composer = screen.getByTestId<HTMLTextAreaElement>("composer");
    await userEvent.type(composer, "Hi{Enter}");
    const card = await screen.findByTestId("error");
    expect(card.dataset["code"]).toBe("model.none");
    expect(composer.value).toBe("Hi");
  });

  test("has Stop in place of Send while an answer runs", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    expect(screen.queryByTestId("send")).toBeNull();
    screen.getByTestId("stop").click();
    expect(host.callsOf("turn_stop")).toEqual([{ conversationId: "c1" }]);
    host.emit({ type: "turnCompleted", turn: turn("c1", "interrupted") });
    await tick();
    expect(screen.queryByTestId("stop")).toBeNull();
    expect(screen.getByTestId("send")).toBeTruthy();
  });

  test("has the focus from the start, and again when the button that stopped an answer is gone", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    expect(screen.getByTestId("composer").closest(".composer")).toBeTruthy();
    await userEvent.click(screen.getByTestId("stop"));
    host.emit({ type: "turnCompleted", turn: turn("c1", "interrupted") });
    await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("composer")));
  });

  test("takes the focus at a start, and leaves it where the person went after a stop", async () => {
    const host = await open(null, { turns: [turn("c1")] });
    await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("composer")));
    screen.getAllByTestId("chat-item")[0]!.click();
    await tick();
    await userEvent.click(await screen.findByTestId("stop"));
    const search = screen.getByTestId("chat-search");
    search.focus();
    host.emit({ type: "turnCompleted", turn: turn("c1", "interrupted") });
    await waitFor(() => screen.getByTestId("send"));
    await tick();
    expect(document.activeElement).toBe(search);
  });

  test("opens a menu on a folder, with keys too: all folders, or take this one back", async () => {
    const host = await open(null);
    const chip = screen.getByTestId("folder-chip");
    expect(chip.dataset["path"]).toBe("/home/mira/House");
    chip.focus();
    await userEvent.keyboard("{Enter}");
    const words = (await screen.findAllByRole("menuitem", { hidden: true })).map((one) => one.textContent?.trim());
    expect(words).toEqual(["Show the folder", "All folders", "Take House back"]);
    await userEvent.click(screen.getByTestId("folder-show"));
    expect(host.callsOf("file_open")).toEqual([{ path: "/home/mira/House" }]);
    await userEvent.click(chip);
    await userEvent.click(await screen.findByTestId("folder-take-back"));
    await waitFor(() => expect(host.callsOf("root_remove")).toEqual([{ server: "files", path: "/home/mira/House" }]));
    await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
    expect(host.callsOf("root_add")).toEqual([{ server: "files", path: "/home/mira/House" }]);
  });

  test("does not say that another program's model stays on this computer", async () => {
    const near = model({ id: "near", provider: "openai-compatible", title: "Near", baseUrl: "http://127.0.0.1:11434/v1", host: "127.0.0.1:11434", local: true, onDevice: null });
    await open(null, { models: { models: [near], active: "near" } });
    const chip = screen.getByTestId("model-chip");
    expect(chip.textContent).not.toContain("on this computer");
    await userEvent.click(chip);
    expect((await screen.findAllByRole("menuitem", { hidden: true }))[0]!.textContent).toContain("At 127.0.0.1:11434 on this computer");
  });

  test("changes the model from its chip, and says where it runs", async () => {
    const host = await open(null);
    const chip = screen.getByTestId("model-chip");
    expect(chip.textContent).toContain("on this computer");
    await userEvent.click(chip);
    await userEvent.click(await screen.findByText("DeepSeek Chat"));
    expect(host.callsOf("model_use")).toEqual([{ id: "deepseek" }]);
  });
});

describe("an answer", () => {
  test("streams in and stays data: markup is text, links go through the engine with their host shown", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    host.emit({ type: "itemStarted", item: said(2, "", "streaming") }, { type: "textDelta", conversationId: "c1", itemId: "c1-2", at: 0, text: "See **the [offer](https://example.com/o)** <img src=x onerror=alert(1)>" });
    await tick();
    const message = screen.getAllByTestId("message").at(-1)!;
    expect(message.dataset).toMatchObject({ role: "assistant", status: "streaming" });
    expect(message.querySelector("img, script")).toBeNull();
    expect(message.textContent).toContain("<img src=x onerror=alert(1)>");
    expect(message.textContent).toContain("(example.com)");
    const link = within(message).getByRole("link");
    expect(await fireEvent.click(link)).toBe(false);
    expect(host.callsOf("url_open")).toEqual([{ url: "https://example.com/o" }]);
  });

  test("that was cut off says so, and its error offers to go on", async () => {
    const host = await open([asked, said(2, "Half of", "interrupted"), item("c1", 3, { kind: "notice", error: appError() })]);
    expect(screen.getByText("The answer stops here")).toBeTruthy();
    const actions = screen.getAllByTestId("error-action");
    expect(actions.map((one) => one.textContent?.trim())).toEqual(["Continue the answer", "Start over"]);
    actions[0]!.click();
    await waitFor(() => expect(host.callsOf("turn_retry")).toEqual([{ conversationId: "c1", continue: true }]));
    host.emit({ type: "itemsRemoved", conversationId: "c1", after: 2 });
    await waitFor(() => expect(screen.queryByTestId("error")).toBeNull());
    expect(screen.getByText("Half of")).toBeTruthy();
  });

  test("that the person stopped says so and goes on where it was stopped", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    host.emit({ type: "itemStarted", item: said(2, "", "streaming") }, { type: "textDelta", conversationId: "c1", itemId: "c1-2", at: 0, text: "Half" });
    host.emit({ type: "itemCompleted", item: said(2, "Half", "interrupted") }, { type: "turnCompleted", turn: turn("c1", "interrupted") });
    await waitFor(() => screen.getByText("You stopped the answer here"));
    await userEvent.click(screen.getByTestId("continue"));
    expect(host.callsOf("turn_retry")).toEqual([{ conversationId: "c1", continue: true }]);
    await userEvent.click(screen.getByTestId("retry"));
    expect(host.callsOf("turn_retry")[1]).toEqual({ conversationId: "c1", continue: false });
    host.emit({ type: "turnStarted", turn: turn("c1") });
    await tick();
    expect(screen.queryByTestId("continue")).toBeNull();
  });

  test("that was stopped before its first word, or never came, can be asked for again", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    expect(screen.queryByTestId("cut")).toBeNull();
    host.emit({ type: "turnCompleted", turn: turn("c1", "interrupted") });
    await waitFor(() => expect(screen.getByTestId("cut").textContent).toContain("You stopped it before an answer came"));
    expect(screen.queryByTestId("continue")).toBeNull();
    await userEvent.click(screen.getByTestId("retry"));
    expect(host.callsOf("turn_retry")).toEqual([{ conversationId: "c1", continue: false }]);
  });

  test.each([
    ["en", {}, "You said no, so nothing was read. This answer is not from your documents."],
    ["zh-CN", {}, "你没有允许，所以什么都没有读。这个回答不是来自你的文档。"],
    ["en", { server: "shop", serverTitle: "Shop", builtIn: false, tool: "find" }, "You said no, so nothing was done. This answer does not come from Shop."],
  ] as const)("after a no says that it comes from nothing that was asked for (%s)", async (language, over, words) => {
    const no = (at: number) => item("c1", at, toolCall({ status: "declined", result: null, ...over }));
    const host = await open([asked, no(2), no(3), said(4, "Your notes say 7 kW."), item("c1", 5, { kind: "user", text: "And?" }), said(6, "I do not know.")], {}, language);
    expect(screen.getAllByTestId("unread").map((one) => one.textContent?.trim())).toEqual([words]);
    expect(screen.getAllByTestId("message")[1]!.textContent).toContain(words);
    // One that was allowed, and the answer may well come from it.
    host.emit({ type: "itemCompleted", item: item("c1", 3, toolCall({ status: "done", ...over })) });
    await waitFor(() => expect(screen.queryByTestId("unread")).toBeNull());
  });

  test("says that the model on this computer starts, while it does", async () => {
    const loading = { models: [model({ onDevice: { state: "loading" } })], active: "qwen" };
    const host = await open([asked], { turns: [turn("c1")], models: loading });
    expect(screen.getByText("Starting the model on this computer…")).toBeTruthy();
    host.emit({ type: "modelsChanged", models: { ...loading, models: [model()] } });
    await waitFor(() => screen.getByText("Your AI is thinking"));
  });

  test("that failed without a word of it in the chat shows its error once", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    host.emit({ type: "turnCompleted", turn: turn("c1", "failed", appError({ code: "model.offline", actions: [] })) });
    await tick();
    expect(screen.getAllByTestId("error").map((card) => card.dataset["code"])).toEqual(["model.offline"]);
  });

  test("is read aloud once it is whole", async () => {
    const host = await open([asked], { turns: [turn("c1")] });
    expect(screen.getByRole("log").getAttribute("aria-live")).toBe("off");
    host.emit({ type: "itemStarted", item: said(2, "Wh", "streaming") });
    await tick();
    const spoken = () => [...document.querySelectorAll(".visually-hidden[role=status]")].map((one) => one.textContent);
    expect(spoken()).not.toContain("Wh");
    host.emit({ type: "itemCompleted", item: said(2, "Whole.") });
    await tick();
    expect(spoken()).toContain("Whole.");
  });
});

describe("a step", () => {
  test.each([
    ["pending", "Next"], ["asking", "Waiting for you"], ["running", "Stop"], ["done", "Done"], ["error", "Did not work"], ["declined", "You said no"], ["cancelled", "Stopped"],
  ] as const)("that is %s says “%s”", async (status, words) => {
    await open([asked, item("c1", 2, toolCall({ status, endedAt: null }))]);
    const card = screen.getByTestId("tool-card");
    expect(card.dataset).toMatchObject({ server: "files", tool: "read_file", status });
    expect(card.textContent).toContain(words);
    expect(card.textContent).toContain("Read “Offer Brandt.pdf”");
  });

  test("shows how far it is and can be stopped alone", async () => {
    const host = await open([asked, item("c1", 2, toolCall({ status: "running", progress: { value: 214, total: 380, message: null }, endedAt: null }))], { turns: [turn("c1")] });
    const bar = screen.getByTestId("progress");
    expect(bar.getAttribute("role")).toBe("progressbar");
    expect(bar.getAttribute("aria-valuenow")).toBe("214");
    expect(bar.getAttribute("aria-valuemax")).toBe("380");
    expect(bar.getAttribute("aria-label")).toBe("Read “Offer Brandt.pdf”");
    expect(screen.getByTestId("progress-text").textContent).toBe("214 of 380");
    within(screen.getByTestId("tool-card")).getByRole("button").click();
    expect(host.callsOf("call_stop")).toEqual([{ itemId: "c1-2" }]);
  });

  test("without a known end has no value to read", async () => {
    await open([asked, item("c1", 2, toolCall({ status: "running", progress: { value: 3, total: null, message: "Looking at pictures" }, endedAt: null }))]);
    expect(screen.getByTestId("progress").getAttribute("aria-valuenow")).toBeNull();
    expect(screen.getByTestId("progress-text").textContent).toBe("Looking at pictures");
  });

  test("that did not work opens on its own; opened, it shows the result, then the exact details", async () => {
    await open([asked, item("c1", 2, toolCall({ status: "error", result: { parts: [{ type: "text", text: "The document is locked.", blob: null }], shortenedFrom: null } }))]);
    expect(screen.getByTestId("tool-result").textContent).toContain("The document is locked.");
    expect(screen.queryByTestId("tool-args")).toBeNull();
    within(screen.getByTestId("tool-card")).getByText("Exact details").click();
    await tick();
    expect(screen.getByTestId("tool-args").textContent).toContain("/home/mira/House/Offers/Offer Brandt.pdf");
  });

  test("that brought a picture or a sound shows them from our own store, and of the rest tells type and size", async () => {
    const host = await open(null);
    const media = (mime: string) => ({ type: "media" as const, mime, blob: mime });
    const parts = [media("image/png"), media("audio/wav; rate=8000"), media("application/pdf"), media("image/x-evil\" onload=\"x"), media("image/gif")];
    host.answers.conversation_open = () => ({ conversation: conversation("c1", "x"), items: [asked, item("c1", 2, toolCall({ server: "shop", serverTitle: "Shop", builtIn: false, result: { parts, shortenedFrom: null } }))], earlier: null, turn: null });
    host.answers.blob_read = ({ id }) => (id === "image/gif" ? Promise.reject(appError({ code: "request.bad" })) : "QUJD");
    screen.getAllByTestId("chat-item")[0]!.click();
    const picture = await screen.findByRole<HTMLImageElement>("img", { name: "Picture from Shop" });
    expect(picture.src).toBe("data:image/png;base64,QUJD");
    expect(document.querySelector("audio")?.getAttribute("src")).toBe("data:audio/wav;base64,QUJD");
    const shown = screen.getAllByTestId("media").map((one) => one.textContent?.replaceAll(/\s+/g, " ").trim());
    expect(shown).toEqual(["", "audio/wav3 B", "application/pdf3 B", 'image/x-evil" onload="x3 B', "image/gif Its contents are not on this computer any more."]);
    expect(document.querySelectorAll(".media img")).toHaveLength(1);
    await fireEvent.error(picture);
    expect(document.querySelectorAll(".media img")).toHaveLength(0);
    expect(screen.getAllByTestId("media")[0]!.textContent).toContain("image/png");
  });

  test("of another connection keeps that connection's words, plain", async () => {
    await open([asked, item("c1", 2, toolCall({ server: "shop", serverTitle: "Shop", builtIn: false, tool: "find", title: "<b>Find</b> the order" }))]);
    const title = screen.getByText("<b>Find</b> the order");
    expect(title.className).toContain("theirs");
  });

  test("joins its neighbours; more than four finished ones fold, failures stay in sight", async () => {
    const calls = [1, 2, 3, 4, 5].map((at) => item("c1", at + 1, toolCall({ arguments: { path: `${at}.pdf` } })));
    await open([asked, ...calls, item("c1", 9, toolCall({ status: "error" }))]);
    expect(screen.getAllByTestId("tool-card")).toHaveLength(1);
    screen.getByText("5 steps done").closest("button")!.click();
    await tick();
    expect(screen.getAllByTestId("tool-card")).toHaveLength(6);
  });

  test("has our words for every tool we ship, in the person's terms", () => {
    const words = (tool: string, args: Record<string, string>) => stepWords({ ...(toolCall({ tool }) as Extract<Item["body"], { kind: "toolCall" }>), arguments: args }).text;
    expect(words("list_folder", {})).toBe("Look at your folders");
    expect(words("list_folder", { path: "Offers" })).toBe("Look into “Offers”");
    expect(words("find_files", { name: "*.pdf" })).toBe("Find “*.pdf” by name");
    expect(words("search_text", { text: "heat", folder: "House" })).toBe("Search House for “heat”");
    expect(words("write_file", { path: "a/b.md" })).toBe("Write “b.md”");
    expect(words("move_file", { from: "a/b.md", to: "a/c.md" })).toBe("Rename “b.md” to “c.md”");
    expect(words("move_file", { from: "a/b.md", to: "d/b.md" })).toBe("Move “b.md” to d");
    expect(words("trash_file", { path: "C:\\x\\y.txt" })).toBe("Move “y.txt” to the trash");
  });
});

describe("the chat", () => {
  test("is renamed in place and deleted after a question that has the safe answer first", async () => {
    const host = await open([asked]);
    await userEvent.click(screen.getByTestId("chat-menu"));
    await userEvent.click(await screen.findByTestId("chat-rename"));
    const field = await screen.findByRole("textbox", { name: "Rename" });
    await userEvent.clear(field);
    await userEvent.type(field, "New name{Enter}");
    expect(host.callsOf("conversation_rename")).toEqual([{ id: "c1", title: "New name" }]);
    await userEvent.click(screen.getByTestId("chat-menu"));
    await userEvent.click(await screen.findByTestId("chat-delete"));
    const dialog = await screen.findByRole("alertdialog");
    const buttons = within(dialog).getAllByRole("button");
    expect(buttons.map((one) => one.textContent?.trim())).toEqual(["Keep it", "Delete chat"]);
    await userEvent.click(buttons[1]!);
    await waitFor(() => expect(host.callsOf("conversation_delete")).toEqual([{ id: "c1" }]));
  });

  test("that is empty offers three tasks that work now", async () => {
    const host = await open(null);
    const tasks = screen.getAllByTestId("first-task");
    expect(tasks.map((one) => one.querySelector(".title")?.textContent)).toEqual(["What is in my House folder?", "Sum up the newest document", "Help me write a short letter"]);
    tasks[0]!.click();
    await waitFor(() => expect(host.callsOf("turn_start")).toEqual([{ conversationId: "new", text: "What is in my House folder?" }]));
  });

  test("without a folder offers to choose one, and nothing that needs one", async () => {
    await open(null, { servers: [server({ roots: [] })] });
    expect(screen.getAllByTestId("first-task").map((one) => one.querySelector(".title")?.textContent)).toEqual(["Choose a folder to look at", "Help me write a short letter", "Explain something simply"]);
  });

  test("pages backwards", async () => {
    const host = await open([asked]);
    host.answers.conversation_open = ({ before }) => ({ conversation: conversation("c2", "Old"), items: before === null ? [item("c2", 20, { kind: "user", text: "later" })] : [item("c2", 5, { kind: "user", text: "before" })], earlier: before === null ? 20 : null, turn: null });
    host.emit({ type: "conversationChanged", conversation: conversation("c2", "Old") });
    await tick();
    screen.getByText("Old").closest("button")!.click();
    await waitFor(() => screen.getByText("later"));
    await userEvent.click(screen.getByText("Earlier messages"));
    await waitFor(() => expect(screen.getAllByTestId("message").map((one) => one.textContent?.trim())).toEqual(["before", "later"]));
    expect(screen.queryByText("Earlier messages")).toBeNull();
  });

  test("lets go of the end when the person scrolls up, and stays let go while text arrives", async () => {
    const host = await open([asked, said(2, "Wo", "streaming")], { turns: [turn("c1")] });
    const log = screen.getByRole("log");
    Object.defineProperties(log, { scrollHeight: { value: 2000 }, clientHeight: { value: 500 } });
    // Opening goes to the end once; that is over when the queue of promises is empty.
    await new Promise((done) => setTimeout(done));
    log.scrollTop = 300;
    await fireEvent.scroll(log);
    await fireEvent.scroll(log);
    host.emit({ type: "textDelta", conversationId: "c1", itemId: "c1-2", at: 2, text: "rds" });
    await new Promise((done) => setTimeout(done));
    expect(log.scrollTop).toBe(300);
    await userEvent.click(screen.getByRole("button", { name: "To the newest message" }));
    expect(log.scrollTop).toBe(2000);
    expect(screen.queryByRole("button", { name: "To the newest message" })).toBeNull();
  });

  test("a gap in the feed subscribes again", async () => {
    const host = await open([asked]);
    const subscribe = vi.spyOn(host, "subscribe");
    host.skip();
    host.emit({ type: "policiesChanged" });
    await waitFor(() => expect(subscribe).toHaveBeenCalledOnce());
  });
});

describe("the window", () => {
  test("goes everywhere by keys", async () => {
    await open([asked]);
    const keys = userEvent.setup();
    await keys.keyboard("{Control>}k{/Control}");
    expect(document.activeElement).toBe(screen.getByTestId("chat-search"));
    await keys.keyboard("{Control>}l{/Control}");
    expect(document.activeElement).toBe(screen.getByTestId("composer"));
    await keys.keyboard("{Control>}3{/Control}");
    expect(screen.getByTestId("nav-permissions").getAttribute("aria-current")).toBe("page");
    await keys.keyboard("{Control>},{/Control}");
    expect(screen.getByTestId("nav-settings").getAttribute("aria-current")).toBe("page");
    await keys.keyboard("{Control>}n{/Control}");
    await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("composer")));
    expect(screen.getAllByTestId("first-task")).toHaveLength(3);
    await keys.keyboard("{Control>}={/Control}");
    await waitFor(() => expect(document.documentElement.style.fontSize).toBe("110%"));
    await keys.keyboard("{Control>}0{/Control}");
    await waitFor(() => expect(document.documentElement.style.fontSize).toBe(""));
  });

  test("F6 walks through its areas", async () => {
    await open([asked]);
    const keys = userEvent.setup();
    const area = () => document.activeElement?.closest("[data-area]")?.className.split(" ")[0];
    const seen = new Set<string | undefined>();
    for (let step = 0; step < 3; step += 1) {
      await keys.keyboard("{F6}");
      seen.add(area());
    }
    expect([...seen].sort()).toEqual(["dock", "main", "side"]);
  });

  test("finds chats by title at once and by content from the engine", async () => {
    const host = await open(null, { conversations: [conversation("c1", "Heating offers"), conversation("c2", "Müller"), conversation("c3", "Other")] });
    host.answers.conversation_search = () => ["c3"];
    await userEvent.type(screen.getByTestId("chat-search"), "muller");
    expect(screen.getAllByTestId("chat-item").map((one) => one.dataset["conversation"])).toEqual(["c2"]);
    await waitFor(() => expect(screen.getAllByTestId("chat-item").map((one) => one.dataset["conversation"])).toEqual(["c2", "c3"]));
    expect(host.callsOf("conversation_search").at(-1)).toEqual({ text: "muller" });
  });

  test("tells in the sidebar what fails and what runs elsewhere", async () => {
    await open(null, { servers: [server(), server({ id: "x", status: "failed" })], turns: [turn("c1")] });
    expect(screen.getByTestId("nav-connections").textContent).toContain("1 connection cannot start");
    expect(screen.getByText("Running")).toBeTruthy();
  });
});

test.each(["en", "zh-CN"] as const)("axe finds nothing to mend (%s)", async (language) => {
  await open(
    [asked, said(2, "# T\n\n- [x] a\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n```js\nlet a\n```\n"), item("c1", 3, toolCall({ status: "error" })), item("c1", 4, toolCall({ status: "running", progress: { value: 1, total: 2, message: null } })), item("c1", 5, { kind: "notice", error: appError() })],
    { models: { models: [model()], active: "qwen" } },
    language,
  );
  const result = await axe.run(document.body, { rules: { "color-contrast": { enabled: false } } });
  expect(result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
});
