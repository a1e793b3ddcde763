import type {
  AppError, AppInfo, Ask, AskOutcome, Conversation, ConversationId, ConversationPage, Event, FeedMessage, Item,
  ItemId, Models, Progress, Server, ServerId, Settings, Snapshot, Turn,
} from "@/contract/index.ts";

/** One chat as far as it is on this side. */
export interface Chat {
  /** True once its page was fetched; before that `items` holds only what the feed brought. */
  loaded: boolean;
  items: Item[];
  /** Give it back for the items above. */
  earlier: number | null;
  /** The turn that runs, or the last one that ended badly while we listened. */
  turn: Turn | null;
}

/** A question that is no more, and why. */
export interface ClosedAsk {
  ask: Ask;
  outcome: AskOutcome;
}

/** Everything the screen shows, and nothing it could work out by itself. */
export interface View {
  phase: "starting" | "ready";
  seq: number;
  /** Newest first. */
  conversations: Conversation[];
  chats: Readonly<Record<ConversationId, Chat>>;
  /** In the order they came. */
  asks: Ask[];
  lastClosed: ClosedAsk | null;
  servers: Server[];
  models: Models;
  settings: Settings;
  notices: AppError[];
  app: AppInfo;
  /** These rise when a list that is fetched by page is out of date. */
  policiesVersion: number;
  auditVersion: number;
  logVersions: Readonly<Record<ServerId, number>>;
}

/** What the reducer cannot do itself. */
export type Need = { type: "resubscribe" } | { type: "refetch"; conversation: ConversationId };

/** The state before the first message. */
export function emptyView(): View {
  return {
    phase: "starting",
    seq: 0,
    conversations: [],
    chats: {},
    asks: [],
    lastClosed: null,
    servers: [],
    models: { models: [], active: null },
    settings: { language: "system", effectiveLanguage: "en", theme: "system", welcomed: true },
    notices: [],
    app: { version: "", picksFolders: true },
    policiesVersion: 0,
    auditVersion: 0,
    logVersions: {},
  };
}

/** Takes one message of the feed. Pure: the same view and message give the same result. */
export function reduce(view: View, message: FeedMessage): { view: View; needs: Need[] } {
  if (message.type === "snapshot") return begin(view, message);
  // Already in the snapshot, or delivered twice.
  if (message.seq <= view.seq) return { view, needs: [] };
  if (message.seq !== view.seq + 1) return { view, needs: [{ type: "resubscribe" }] };
  const needs: Need[] = [];
  let next: View = { ...view, seq: message.seq };
  for (const event of message.events) next = apply(next, event, needs);
  return { view: next, needs };
}

/** Takes a fetched page: the newest one replaces what is there, an earlier one goes above it. */
export function addPage(view: View, page: ConversationPage, before: number | null): View {
  const id = page.conversation.id;
  const own = view.chats[id];
  if (before !== null && own) {
    return withChat(view, id, { ...own, items: mergeItems(page.items, own.items), earlier: page.earlier });
  }
  // While the page travelled, the feed may have brought newer items or more text than the page holds.
  const items = own ? mergeItems(own.items.filter((item) => newer(item, page)), page.items, longer) : page.items;
  return withChat(view, id, { loaded: true, items, earlier: page.earlier, turn: page.turn ?? failedTurn(own) });
}

function failedTurn(chat: Chat | undefined): Turn | null {
  return chat?.turn && chat.turn.status !== "running" ? chat.turn : null;
}

function newer(item: Item, page: ConversationPage): boolean {
  const last = page.items.at(-1);
  return !last || item.ordinal >= last.ordinal;
}

function begin(view: View, snapshot: Snapshot): { view: View; needs: Need[] } {
  const chats: Record<ConversationId, Chat> = {};
  const needs: Need[] = [];
  for (const [id, chat] of Object.entries(view.chats)) {
    if (!snapshot.conversations.some((conversation) => conversation.id === id)) continue;
    chats[id] = { ...chat, turn: null };
    if (chat.loaded) needs.push({ type: "refetch", conversation: id });
  }
  for (const turn of snapshot.turns) {
    const chat = chats[turn.conversationId] ?? emptyChat();
    chats[turn.conversationId] = { ...chat, turn };
  }
  return {
    view: {
      ...view,
      phase: "ready",
      seq: snapshot.seq,
      conversations: snapshot.conversations,
      chats,
      asks: snapshot.asks,
      servers: snapshot.servers,
      models: snapshot.models,
      settings: snapshot.settings,
      notices: snapshot.notices,
      app: snapshot.app,
      policiesVersion: view.policiesVersion + 1,
      auditVersion: view.auditVersion + 1,
    },
    needs,
  };
}

function apply(view: View, event: Event, needs: Need[]): View {
  switch (event.type) {
    case "conversationChanged": {
      const others = view.conversations.filter((one) => one.id !== event.conversation.id);
      const conversations = [...others, event.conversation].sort((a, b) => b.updatedAt - a.updatedAt);
      return { ...view, conversations };
    }
    case "conversationRemoved": {
      const { [event.id]: _gone, ...chats } = view.chats;
      return { ...view, chats, conversations: view.conversations.filter((one) => one.id !== event.id) };
    }
    case "turnStarted":
    case "turnCompleted":
      return changeChat(view, event.turn.conversationId, (chat) => ({ ...chat, turn: event.turn }));
    case "itemsRemoved":
      return changeChat(view, event.conversationId, (chat) => ({ ...chat, items: chat.items.filter((item) => item.ordinal <= event.after) }));
    case "itemStarted":
    case "itemChanged":
    case "itemCompleted":
      return changeChat(view, event.item.conversationId, (chat) => ({ ...chat, items: putItem(chat.items, event.item) }));
    case "textDelta":
      return changeItem(view, event.conversationId, event.itemId, (item) => {
        if (item.body.kind !== "assistant") return item;
        const have = item.body.text.length;
        if (event.at > have) {
          needs.push({ type: "refetch", conversation: event.conversationId });
          return item;
        }
        const fresh = event.text.slice(have - event.at);
        return fresh === "" ? item : { ...item, body: { ...item.body, text: item.body.text + fresh } };
      });
    case "progress":
      return changeItem(view, event.conversationId, event.itemId, (item) =>
        item.body.kind === "toolCall" ? { ...item, body: { ...item.body, progress: rising(item.body.progress, event.progress) } } : item,
      );
    case "askOpened":
      return { ...view, asks: [...view.asks.filter((ask) => ask.id !== event.ask.id), event.ask] };
    case "askClosed": {
      const ask = view.asks.find((one) => one.id === event.id);
      if (!ask) return view;
      return {
        ...view,
        asks: view.asks.filter((one) => one.id !== event.id),
        lastClosed: { ask, outcome: event.outcome },
      };
    }
    case "serversChanged":
      return { ...view, servers: event.servers };
    case "serverChanged":
      return {
        ...view,
        servers: view.servers.some((one) => one.id === event.server.id)
          ? view.servers.map((one) => (one.id === event.server.id ? event.server : one))
          : [...view.servers, event.server],
      };
    case "serverLogged":
      return { ...view, logVersions: { ...view.logVersions, [event.id]: (view.logVersions[event.id] ?? 0) + 1 } };
    case "modelsChanged":
      return { ...view, models: event.models };
    case "settingsChanged":
      return { ...view, settings: event.settings };
    case "noticesChanged":
      return { ...view, notices: event.notices };
    case "policiesChanged":
      return { ...view, policiesVersion: view.policiesVersion + 1 };
    case "auditChanged":
      return { ...view, auditVersion: view.auditVersion + 1 };
    default:
      return unknownEvent(view, event);
  }
}

/** The compiler proves that every event is handled; one of a newer engine is passed over. */
function unknownEvent(view: View, _event: never): View {
  return view;
}

function emptyChat(): Chat {
  return { loaded: false, items: [], earlier: null, turn: null };
}

function withChat(view: View, id: ConversationId, chat: Chat): View {
  return { ...view, chats: { ...view.chats, [id]: chat } };
}

function changeChat(view: View, id: ConversationId, change: (chat: Chat) => Chat): View {
  return withChat(view, id, change(view.chats[id] ?? emptyChat()));
}

function changeItem(view: View, id: ConversationId, itemId: ItemId, change: (item: Item) => Item): View {
  const chat = view.chats[id];
  const at = chat?.items.findLastIndex((item) => item.id === itemId) ?? -1;
  const item = chat?.items[at];
  if (!chat || !item) return view;
  const changed = change(item);
  return changed === item ? view : withChat(view, id, { ...chat, items: chat.items.with(at, changed) });
}

function putItem(items: Item[], item: Item): Item[] {
  const at = items.findLastIndex((one) => one.id === item.id);
  if (at >= 0) return items.with(at, item);
  const last = items.at(-1);
  if (!last || last.ordinal < item.ordinal) return [...items, item];
  return [...items, item].sort((a, b) => a.ordinal - b.ordinal);
}

function longer(a: Item, b: Item): Item {
  // A finished item is the truth; of two unfinished ones the one with more text is newer.
  if (a.completedAt !== null || b.completedAt !== null) return a.completedAt !== null ? a : b;
  return a.body.kind === "assistant" && b.body.kind === "assistant" && b.body.text.length > a.body.text.length ? b : a;
}

function mergeItems(first: Item[], second: Item[], pick: (a: Item, b: Item) => Item = (_a, b) => b): Item[] {
  const byId = new Map<ItemId, Item>();
  for (const item of first) byId.set(item.id, item);
  for (const item of second) {
    const have = byId.get(item.id);
    byId.set(item.id, have ? pick(have, item) : item);
  }
  return [...byId.values()].sort((a, b) => a.ordinal - b.ordinal);
}

/** Progress never falls and never passes its end, whatever was sent. */
function rising(before: Progress | null, now: Progress): Progress {
  const total = now.total !== null && now.total > 0 ? now.total : null;
  const floor = before && before.total === now.total ? before.value : 0;
  const value = Math.max(floor, Number.isFinite(now.value) ? now.value : 0);
  return { value: total === null ? value : Math.min(total, value), total, message: now.message };
}
