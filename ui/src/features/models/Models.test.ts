import { screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { appError, model } from "../../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../../tests/onePage.ts";
import { deepseek, pagesHost } from "../../../tests/pages.ts";
import { check, isOpenLine, presetOf, toSave } from "./draft.ts";
import Models from "./Models.svelte";

const row = (id: string) => screen.getAllByTestId("model").find((one) => one.dataset.model === id)!;

async function openForm() {
  await userEvent.click(screen.getByTestId("model-add"));
  await settle();
}

async function fill(values: { url?: string; name?: string; key?: string }) {
  if (values.url) await userEvent.type(screen.getByTestId("model-url"), values.url);
  if (values.name) await userEvent.type(screen.getByTestId("model-name"), values.name);
  if (values.key) await userEvent.type(screen.getByTestId("model-key"), values.key);
}

describe.each(["en", "zh-CN"] as const)("the models page in %s", (language) => {
  it("is accessible, with and without its form", async () => {
    const { container } = await openPage(Models, pagesHost(), { language });
    await expectAccessible(container);
    await openForm();
    await userEvent.click(screen.getByTestId("model-save"));
    await expectAccessible(container);
  });

  it("is accessible with no model", async () => {
    const { container } = await openPage(Models, pagesHost({ models: { models: [], active: null } }), { language });
    await expectAccessible(container);
  });
});

describe("the list", () => {
  it("says where each runs and what is sent there", async () => {
    await openPage(Models, pagesHost());
    expect(row("qwen")).toHaveTextContent("On this computer");
    expect(row("deepseek")).toHaveTextContent("api.deepseek.com");
    expect(row("deepseek")).toHaveTextContent("What you write and what tools read is sent there.");
    expect(row("deepseek")).toHaveTextContent("Key in your keychain");
    expect(row("ollama")).toHaveTextContent("Goes to a program on this computer, at 127.0.0.1:11434. Whether it stays here is up to that program.");
  });

  it("says that a key kept until quitting is needed again, and leads to its field", async () => {
    const host = pagesHost({ models: { models: [deepseek, { ...deepseek, id: "gone", title: "Gone", hasKey: false, keyMissing: true }], active: "gone" } });
    await openPage(Models, host);
    expect(row("gone")).toHaveTextContent("The key is needed again: it was kept only until you quit.");
    expect(row("gone")).not.toHaveTextContent("keychain");
    expect(row("deepseek")).not.toHaveTextContent("needed again");
    await userEvent.click(within(row("gone")).getByTestId("model-key-again"));
    await settle();
    expect(screen.getByTestId("model-key")).toHaveFocus();
  });

  it("is honest about a small model and shows what was measured", async () => {
    await openPage(Models, pagesHost());
    expect(row("qwen")).toHaveTextContent("Longer tasks often go wrong.");
    expect(row("qwen")).toHaveTextContent("0.8 seconds");
    expect(row("qwen")).toHaveTextContent("9 words a second");
  });

  it("uses the chosen one", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    expect(within(row("qwen")).getByRole("radio")).toBeChecked();
    await userEvent.click(within(row("deepseek")).getByTestId("model-use"));
    await userEvent.click(within(row("ollama")).getByRole("radio", { name: "qwen3:8b" }));
    expect(host.callsOf("model_use")).toEqual([{ id: "deepseek" }, { id: "ollama" }]);
  });

  it.each([
    ["absent", "Its file is not on this computer"],
    ["idle", "Starts with your next message"],
    ["loading", "Getting ready"],
  ] as const)("says that a model on this computer is %s", async (state, words) => {
    await openPage(Models, pagesHost({ models: { models: [model({ onDevice: { state } })], active: "qwen" } }));
    expect(row("qwen")).toHaveTextContent(words);
  });

  it("says why a model did not start and how to go on", async () => {
    const error = appError({ code: "model.memory", params: { model: "Qwen 1.5B", needed: 3, free: 1.2 }, actions: [{ type: "retry" }] });
    const host = pagesHost({ models: { models: [model({ onDevice: { state: "failed", error } })], active: "qwen" } });
    await openPage(Models, host);
    expect(row("qwen")).toHaveTextContent("It needs 3 GB, and 1.2 GB are free.");
    await userEvent.click(within(row("qwen")).getByTestId("error-action"));
    expect(host.callsOf("model_use")).toEqual([{ id: "qwen" }]);
  });

  it("tests one and says how it went", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    await userEvent.click(within(row("deepseek")).getByTestId("model-test"));
    await settle();
    expect(row("deepseek")).toHaveTextContent("It answered after 0.6 seconds.");
    host.answers.model_test = () => ({ ok: false, error: appError({ code: "model.offline", params: { model: "DeepSeek Chat" }, actions: [{ type: "retry" }] }), firstTokenMs: null });
    await userEvent.click(within(row("deepseek")).getByTestId("model-test"));
    await settle();
    expect(row("deepseek")).toHaveTextContent("DeepSeek Chat cannot be reached");
  });

  it("says nothing of a message when a test fails", async () => {
    const host = pagesHost();
    host.answers.model_test = () => ({ ok: false, error: appError({ code: "model.offline", params: { model: "DeepSeek" }, actions: [] }), firstTokenMs: null });
    await openPage(Models, host);
    await userEvent.click(within(row("deepseek")).getByTestId("model-test"));
    await settle();
    expect(row("deepseek")).toHaveTextContent("DeepSeek cannot be reached");
    expect(row("deepseek")).not.toHaveTextContent("message");
  });

  it("asks before it removes one, with keeping it in focus", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    await userEvent.click(within(row("deepseek")).getByTestId("model-remove"));
    expect(within(row("deepseek")).getByRole("button", { name: "Keep DeepSeek Chat" })).toHaveFocus();
    await userEvent.click(within(row("deepseek")).getByTestId("model-remove-confirm"));
    await settle();
    expect(host.callsOf("model_remove")).toEqual([{ id: "deepseek" }]);
    expect(within(row("qwen")).queryByTestId("model-remove")).toBeNull();
  });
});

describe("adding one", () => {
  it("sends what was written, trimmed, and closes", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    await openForm();
    expect(screen.getByTestId("model-url")).toHaveFocus();
    await fill({ url: " https://api.mistral.ai/v1/ ", name: " mistral-small ", key: "sk-1" });
    await userEvent.click(screen.getByTestId("model-save"));
    await settle();
    expect(host.callsOf("model_save")).toEqual([
      { model: { id: null, provider: "openai-compatible", baseUrl: "https://api.mistral.ai/v1", name: "mistral-small", key: "sk-1" }, sessionOnly: false },
    ]);
    expect(screen.queryByTestId("model-url")).toBeNull();
    expect(screen.getByTestId("toast")).toHaveTextContent("mistral-small saved");
  });

  it("says what is wrong at its field, focuses the first and sends nothing", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    await openForm();
    await fill({ url: "api.mistral.ai" });
    await userEvent.click(screen.getByTestId("model-save"));
    expect(screen.getByTestId("model-url")).toHaveFocus();
    expect(screen.getByTestId("model-url")).toHaveAccessibleDescription(/An address starts with https/);
    expect(screen.getByTestId("model-url")).toHaveValue("api.mistral.ai");
    expect(screen.getByTestId("model-name")).toBeInvalid();
    expect(host.callsOf("model_save")).toEqual([]);
  });

  it("fills the address of the programs people run themselves", async () => {
    await openPage(Models, pagesHost());
    await openForm();
    await userEvent.click(screen.getByRole("radio", { name: "Ollama" }));
    expect(screen.getByTestId("model-url")).toHaveValue("http://127.0.0.1:11434/v1");
    await userEvent.click(screen.getByRole("radio", { name: "LM Studio" }));
    expect(screen.getByTestId("model-url")).toHaveValue("http://127.0.0.1:1234/v1");
    await userEvent.click(screen.getByRole("radio", { name: "Another address" }));
    expect(screen.getByTestId("model-url")).toHaveValue("");
  });

  it("cautions about a line that is not encrypted", async () => {
    await openPage(Models, pagesHost());
    await openForm();
    await fill({ url: "http://models.example/v1" });
    expect(screen.getByText(/This address is not encrypted/)).toBeInTheDocument();
  });

  it("tests what is written, keeps nothing, and forgets the result when it is changed", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    await openForm();
    await fill({ url: "https://api.mistral.ai/v1", name: "m" });
    await userEvent.click(screen.getByTestId("model-test"));
    await settle();
    expect(screen.getByText("It answered after 0.6 seconds.")).toBeInTheDocument();
    expect(host.callsOf("model_try").map((one) => one.model.baseUrl)).toEqual(["https://api.mistral.ai/v1"]);
    expect(host.callsOf("model_save")).toEqual([]);
    await userEvent.type(screen.getByTestId("model-name"), "2");
    await settle();
    expect(screen.queryByText("It answered after 0.6 seconds.")).toBeNull();
  });

  it("says a refused key at the key", async () => {
    const host = pagesHost();
    host.answers.model_try = () => ({ ok: false, error: appError({ code: "model.key_refused", params: { model: "Mistral" } }), firstTokenMs: null });
    await openPage(Models, host);
    await openForm();
    await fill({ url: "https://api.mistral.ai/v1", name: "m", key: "wrong" });
    await userEvent.click(screen.getByTestId("model-test"));
    await settle();
    expect(screen.getByTestId("model-key")).toHaveAccessibleDescription(/Mistral does not know this key. Copy it again\?/);
    expect(screen.getByTestId("model-key")).toHaveValue("wrong");
  });

  it("offers the key until quitting where there is no keychain, only when it is pressed", async () => {
    const host = pagesHost();
    host.answers.model_save = ({ sessionOnly }) => {
      if (!sessionOnly) throw appError({ code: "keychain.unavailable", params: {}, actions: [{ type: "retry" }] });
      return "new-model";
    };
    await openPage(Models, host);
    await openForm();
    await fill({ url: "https://api.mistral.ai/v1", name: "m", key: "sk-1" });
    await userEvent.click(screen.getByTestId("model-save"));
    await settle();
    expect(screen.getByText("There is no keychain to use")).toBeInTheDocument();
    expect(screen.getByText("Not kept: your keychain did not take it.")).toBeInTheDocument();
    expect(screen.queryByText("Kept in your computer’s keychain, never in a file.")).toBeNull();
    expect(screen.getAllByTestId("error-action").map((one) => one.textContent?.trim())).toEqual(["Use until I quit"]);
    expect(host.callsOf("model_save").map((one) => one.sessionOnly)).toEqual([false]);
    await userEvent.click(screen.getByRole("button", { name: "Use until I quit" }));
    await settle();
    expect(host.callsOf("model_save").map((one) => one.sessionOnly)).toEqual([false, true]);
    expect(screen.queryByTestId("model-url")).toBeNull();
  });

  it("hides the key unless it is asked to show it", async () => {
    await openPage(Models, pagesHost());
    await openForm();
    expect(screen.getByTestId("model-key")).toHaveAttribute("type", "password");
    await userEvent.click(screen.getByRole("button", { name: "Show the key" }));
    expect(screen.getByTestId("model-key")).toHaveAttribute("type", "text");
  });
});

describe("changing one", () => {
  it("keeps the key that is there when none is written", async () => {
    const host = pagesHost();
    await openPage(Models, host);
    await userEvent.click(within(row("deepseek")).getByTestId("model-edit"));
    await settle();
    expect(screen.getByTestId("model-key")).toHaveValue("");
    await userEvent.click(screen.getByTestId("model-save"));
    await settle();
    expect(host.callsOf("model_save")[0]?.model).toEqual({ id: "deepseek", provider: "openai-compatible", baseUrl: "https://api.deepseek.com/v1", name: "deepseek-chat", key: null });
  });

  it("opens where another place asked to check the key", async () => {
    const { editModel } = await import("@/state/editModel.svelte.ts");
    editModel.id = "deepseek";
    await openPage(Models, pagesHost());
    expect(screen.getByTestId("model-url")).toHaveValue("https://api.deepseek.com/v1");
    expect(editModel.id).toBeNull();
  });
});

describe("a draft", () => {
  const draft = (url: string, name = "m", key = "") => ({ id: null, preset: "other" as const, url, name, key });

  it("takes only web addresses", () => {
    expect(check(draft("https://x/v1")).url).toBe(false);
    for (const url of ["", "x", "file:///etc/passwd", "javascript:alert(1)", "ftp://x"]) expect(check(draft(url)).url, url).toBe(true);
  });

  it("keeps what precedes the call", () => {
    expect(toSave(draft("https://x.example/v1/chat/completions")).baseUrl).toBe("https://x.example/v1");
  });

  it("knows this computer's own addresses", () => {
    expect(isOpenLine("http://localhost:1234/v1")).toBe(false);
    expect(isOpenLine("http://127.0.0.1/v1")).toBe(false);
    expect(isOpenLine("http://[::1]:80/v1")).toBe(false);
    expect(isOpenLine("https://x.example")).toBe(false);
    expect(isOpenLine("http://localhost.example")).toBe(true);
    expect(presetOf("http://127.0.0.1:8000/v1/")).toBe("vllm");
  });
});
