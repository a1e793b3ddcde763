import { ago as sinceThen, clock, day, daysAgo, language, m } from "@/i18n.svelte.ts";

/** Chinese is written with a space between its letters and digits; `Intl` leaves it out. */
export function spaced(text: string): string {
  return text.replace(/(\p{Script=Han})(?=\d)|(\d)(?=\p{Script=Han})/gu, "$1$2 ");
}

/** A day as a heading or a fact: today, yesterday, else its date. */
export function dayName(at: number, now: number = Date.now()): string {
  const days = daysAgo(at, now);
  if (days !== 0 && days !== 1) return spaced(day(at, now));
  return new Intl.RelativeTimeFormat(language(), { numeric: "auto" }).format(-days, "day");
}

/** {@link dayName} at the head of a line. */
export function dayTitle(at: number, now: number = Date.now()): string {
  const name = dayName(at, now);
  return name.charAt(0).toLocaleUpperCase(language()) + name.slice(1);
}

/** A moment for "Since …": a day, and for today its time too. */
export function dayOrTime(at: number, now: number = Date.now()): string {
  if (daysAgo(at, now) !== 0) return dayName(at, now);
  return `${dayName(at, now)}${language() === "en" ? ", " : " "}${clock(at)}`;
}

/** How long ago, such as "2 minutes ago"; after a week the day. A clock that was set back never puts it in the future. */
export function longAgo(at: number, now: number = Date.now()): string {
  const then = Math.min(at, now);
  if (now - then < 60_000) return m["permissions.justNow"]();
  return daysAgo(then, now) < 7 ? spaced(sinceThen(then, now)) : spaced(day(then, now));
}
