import { fireEvent, render, screen, waitFor } from "@testing-library/svelte";
import { expect, test, vi } from "vitest";
import IconButton from "./IconButton.svelte";
import { later } from "./later.svelte.ts";

test("a button's tooltip comes once the pointer rests on it, and goes with it", async () => {
  vi.useFakeTimers();
  render(IconButton, { icon: "copy", label: "Copy" });
  const button = screen.getByRole("button", { name: "Copy" });
  await fireEvent.pointerEnter(button);
  await vi.advanceTimersByTimeAsync(399);
  expect(screen.queryByRole("tooltip")).toBeNull();
  await vi.advanceTimersByTimeAsync(1);
  const tooltip = screen.getByRole("tooltip");
  expect(tooltip.textContent).toBe("Copy");
  expect(tooltip.parentElement).toBe(document.body);
  await fireEvent.pointerLeave(button);
  expect(screen.queryByRole("tooltip")).toBeNull();
});

test("a pointer that passes by opens no tooltip, and a button that goes takes its tooltip along", async () => {
  vi.useFakeTimers();
  const { unmount } = render(IconButton, { icon: "copy", label: "Copy" });
  const button = screen.getByRole("button", { name: "Copy" });
  await fireEvent.pointerEnter(button);
  await fireEvent.pointerLeave(button);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(screen.queryByRole("tooltip")).toBeNull();
  await fireEvent.pointerEnter(button);
  await vi.advanceTimersByTimeAsync(400);
  expect(screen.getByRole("tooltip")).toBeTruthy();
  unmount();
  expect(screen.queryByRole("tooltip")).toBeNull();
});

test("Escape closes a tooltip and nothing else", async () => {
  vi.useFakeTimers();
  const below = vi.fn();
  document.body.addEventListener("keydown", below);
  render(IconButton, { icon: "copy", label: "Copy" });
  const button = screen.getByRole("button", { name: "Copy" });
  await fireEvent.pointerEnter(button);
  await vi.advanceTimersByTimeAsync(400);
  await fireEvent.keyDown(button, { key: "Escape" });
  expect(screen.queryByRole("tooltip")).toBeNull();
  expect(below).not.toHaveBeenCalled();
  await fireEvent.keyDown(button, { key: "Escape" });
  expect(below).toHaveBeenCalledTimes(1);
  document.body.removeEventListener("keydown", below);
});

test("a part that did not load is fetched again at the next look", async () => {
  const told = vi.spyOn(console, "error").mockImplementation(() => {});
  let works = false;
  const part = later(async () => {
    if (!works) throw new Error("gone");
    return { default: IconButton };
  });
  expect(part.part).toBeNull();
  await waitFor(() => expect(told).toHaveBeenCalledTimes(1));
  works = true;
  expect(part.part).toBeNull();
  await waitFor(() => expect(part.part).toBe(IconButton));
});
