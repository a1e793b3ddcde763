import { screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { appError } from "../../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../../tests/onePage.ts";
import { pagesHost } from "../../../tests/pages.ts";
import Settings from "./Settings.svelte";

describe.each(["en", "zh-CN"] as const)("the settings page in %s", (language) => {
  it("is accessible", async () => {
    const { container } = await openPage(Settings, pagesHost(), { language });
    await expectAccessible(container);
  });
});

it("changes the language and the look, one at a time", async () => {
  const host = pagesHost();
  await openPage(Settings, host);
  await userEvent.click(within(screen.getByTestId("language")).getByRole("radio", { name: "简体中文" }));
  await userEvent.click(within(screen.getByTestId("theme")).getByRole("radio", { name: "Dark" }));
  expect(host.callsOf("settings_change")).toEqual([{ change: { language: "zh-CN" } }, { change: { theme: "dark" } }]);
});

it("speaks the new language as soon as the engine has it", async () => {
  const host = pagesHost();
  await openPage(Settings, host);
  host.emit({ type: "settingsChanged", settings: { ...host.snapshot.settings, language: "zh-CN", effectiveLanguage: "zh-CN" } });
  await settle();
  expect(screen.getByRole("heading", { level: 1 })).toHaveTextContent("设置");
  expect(document.documentElement.lang).toBe("zh-CN");
  expect(screen.getByTestId("language").dataset.value).toBe("zh-CN");
});

it("opens the file and the logs, and names the version", async () => {
  const host = pagesHost();
  await openPage(Settings, host);
  expect(screen.getByText("Version 0.1.0")).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Open settings.json" }));
  await userEvent.click(screen.getByRole("button", { name: "Open log folder" }));
  expect(host.callsOf("file_open")).toEqual([{ path: "settings.json" }, { path: "logs" }]);
});

it("says when a change was not kept and tries it again", async () => {
  const host = pagesHost();
  let full = true;
  host.answers.settings_change = () => {
    if (full) throw appError({ code: "storage.full", params: {}, actions: [{ type: "retry" }] });
    return {};
  };
  await openPage(Settings, host);
  await userEvent.click(within(screen.getByTestId("theme")).getByRole("radio", { name: "Dark" }));
  await settle();
  full = false;
  await userEvent.click(screen.getByTestId("error-action"));
  await settle();
  expect(screen.queryByTestId("error")).toBeNull();
  expect(host.callsOf("settings_change")).toHaveLength(2);
});
