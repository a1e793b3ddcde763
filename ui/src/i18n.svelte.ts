import type { Language } from "@/contract/index.ts";
import { overwriteGetLocale } from "@/paraglide/runtime.js";

export { m } from "@/paraglide/messages.js";

const current = $state<{ language: Language }>({ language: "en" });

// A message asks for its language each time it is read, so reading it in a component follows the setting.
overwriteGetLocale(() => current.language);

/** The language on screen. */
export function language(): Language {
  return current.language;
}

/** Switches every text, and the document's `lang`, which picks the fonts. */
export function setLanguage(to: Language): void {
  current.language = to;
  document.documentElement.lang = to;
}

/** A number with the language's separators. */
export function count(value: number): string {
  return new Intl.NumberFormat(current.language).format(value);
}

/** 84 KB, 1.1 GB. */
export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || size >= 10 ? 0 : 1;
  return `${new Intl.NumberFormat(current.language, { maximumFractionDigits: digits }).format(size)} ${units[unit]}`;
}

/** 14:05 */
export function clock(at: number): string {
  return new Intl.DateTimeFormat(current.language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at);
}

/** 14:05:11 */
export function clockSeconds(at: number): string {
  return new Intl.DateTimeFormat(current.language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }).format(at);
}

/** 3 November, with the year when it is another one. */
export function day(at: number, now: number = Date.now()): string {
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return new Intl.DateTimeFormat(current.language === "en" ? "en-GB" : current.language, {
    day: "numeric",
    month: "long",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(at);
}

/** Whole days between two moments as the calendar counts them: 0 is today, 1 yesterday. */
export function daysAgo(at: number, now: number = Date.now()): number {
  const midnight = (moment: number) => new Date(moment).setHours(0, 0, 0, 0);
  return Math.round((midnight(now) - midnight(at)) / 86_400_000);
}

/** 2 minutes ago, in the language's own words. */
export function ago(at: number, now: number = Date.now()): string {
  const format = new Intl.RelativeTimeFormat(current.language, { numeric: "auto" });
  const seconds = Math.round((at - now) / 1000);
  if (seconds > -60) return format.format(0, "minute");
  if (seconds > -3600) return format.format(Math.round(seconds / 60), "minute");
  if (daysAgo(at, now) === 0) return format.format(Math.round(seconds / 3600), "hour");
  return format.format(-daysAgo(at, now), "day");
}

/** 0:12, 1:40, 1:02:03 */
export function stopwatch(ms: number): string {
  const whole = Math.max(0, Math.round(ms / 1000));
  const pad = (part: number) => String(part).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}
