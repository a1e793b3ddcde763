import { getContext, setContext } from "svelte";
import type { AppError, Ask, AskOption, Conversation, ConversationId, FeedMessage, Page, Server } from "@/contract/index.ts";
import { toAppError, type Host } from "@/host/index.ts";
import { setLanguage } from "@/i18n.svelte.ts";
import { addPage, emptyView, reduce, type Chat, type ClosedAsk, type Need, type View } from "./reduce.ts";

const nothing = emptyView();

/** How often an answer that has become long is drawn while it grows; reading does not feel it, an old computer does. */
const PACE = 150;
/** From this many characters on an answer is long. */
const LONG = 1_000;

/** The view field by field, so that what shows one of them is not looked at again when only another changes. */
class Shown implements View {
  phase = $state.raw(nothing.phase);
  seq = $state.raw(nothing.seq);
  conversations = $state.raw(nothing.conversations);
  chats = $state.raw(nothing.chats);
  asks = $state.raw(nothing.asks);
  lastClosed = $state.raw(nothing.lastClosed);
  servers = $state.raw(nothing.servers);
  models = $state.raw(nothing.models);
  settings = $state.raw(nothing.settings);
  notices = $state.raw(nothing.notices);
  app = $state.raw(nothing.app);
  policiesVersion = $state.raw(nothing.policiesVersion);
  auditVersion = $state.raw(nothing.auditVersion);
  logVersions = $state.raw(nothing.logVersions);
}

/** The one owner of what is on screen: it hears the feed, and components read it and tell it what the person did. */
export class App {
  #now: View = nothing;
  readonly #shown = new Shown();
  /** The page in front. */
  page = $state<Page>("chat");
  /** The chat in front; null is the empty one that the first message will create. */
  conversation = $state<ConversationId | null>(null);
  /** Set when the engine cannot be reached at all. */
  lost = $state.raw<AppError | null>(null);
  /** Errors of commands the person gave in a chat, shown in it until the next message; "" is the empty chat. */
  chatErrors = $state.raw<Readonly<Record<string, AppError>>>({});
  /** Text not sent yet, by chat. */
  drafts = $state<Record<string, string>>({});
  /** Where the focus shall go; whoever holds that place takes it, now or once it is there. A start goes to writing. */
  wanted = $state<"composer" | "ask" | "search" | null>("composer");
  /** The person stopped the answer, and it has not ended yet. */
  stopping = $state(false);
  /** The questions of no visible chat are open to view. */
  inboxOpen = $state(false);
  /** The connection that a page is asked to show opened, and whether with its log. */
  spotlight = $state.raw<{ server: string; log: boolean } | null>(null);
  /** The window is so narrow that the sidebar is a rail. */
  rail = $state(false);
  /** The window is so low that a question takes the whole page. */
  short = $state(false);
  /** Text size, in per cent of the usual one. */
  zoom = $state(100);

  constructor(readonly host: Host) {}

  get view(): Readonly<View> {
    return this.#shown;
  }

  #drawnAt = 0;
  #soon: ReturnType<typeof setTimeout> | null = null;

  #show(view: View): void {
    this.#now = view;
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#soon = null;
    this.#drawnAt = performance.now();
    Object.assign(this.#shown, view);
  }

  /** Shows it now, or with what else comes within the pace. */
  #showSoon(view: View): void {
    this.#now = view;
    this.#soon ??= setTimeout(() => this.#show(this.#now), Math.max(0, this.#drawnAt + PACE - performance.now()));
  }

  /** The visible chat, once anything of it is here. */
  get chat(): Chat | null {
    return this.conversation === null ? null : (this.view.chats[this.conversation] ?? null);
  }

  get current(): Conversation | null {
    return this.view.conversations.find((one) => one.id === this.conversation) ?? null;
  }

  /** A turn runs in the visible chat. */
  get running(): boolean {
    return this.chat?.turn?.status === "running";
  }

  /** Questions of the visible chat. */
  get asksHere(): Ask[] {
    if (this.page !== "chat" || this.conversation === null) return [];
    return this.view.asks.filter((ask) => ask.conversationId === this.conversation);
  }

  /** The question that left last, for its one grey line. */
  get lastClosed(): ClosedAsk | null {
    return this.view.lastClosed;
  }

  /** Questions that the visible chat does not show. */
  get asksElsewhere(): Ask[] {
    return this.view.asks.filter((ask) => this.page !== "chat" || ask.conversationId === null || ask.conversationId !== this.conversation);
  }

  get activeModel() {
    return this.view.models.models.find((model) => model.id === this.view.models.active) ?? null;
  }

  server(id: string): Server | null {
    return this.view.servers.find((one) => one.id === id) ?? null;
  }

  /** Begins to listen; the page is `starting` until the first snapshot. */
  async start(): Promise<void> {
    try {
      await this.host.subscribe(
        (message) => this.#hear(message),
        (error) => this.#loseLine(error),
      );
      this.lost = null;
    } catch (thrown) {
      this.lost = toAppError(thrown);
    }
  }

  #hear(message: FeedMessage): void {
    const { view, needs } = reduce(this.#now, message);
    if (growsLong(message)) this.#showSoon(view);
    else this.#show(view);
    this.lost = null;
    setLanguage(view.settings.effectiveLanguage);
    if (this.conversation !== null && !view.conversations.some((one) => one.id === this.conversation)) {
      this.conversation = null;
    }
    for (const need of needs) this.#meet(need);
  }

  #meet(need: Need): void {
    switch (need.type) {
      case "resubscribe":
        void this.start();
        break;
      case "refetch":
        void this.#fetch(need.conversation, null);
        break;
    }
  }

  #loseLine(error: AppError): void {
    this.lost = error;
  }

  #fetching = new Set<string>();

  async #fetch(id: ConversationId, before: number | null): Promise<void> {
    const key = `${id} ${before}`;
    if (this.#fetching.has(key)) return;
    this.#fetching.add(key);
    try {
      const page = await this.host.rpc("conversation_open", { id, before });
      this.#show(addPage(this.#now, page, before));
    } catch (thrown) {
      this.fail(thrown, id);
    } finally {
      this.#fetching.delete(key);
    }
  }

  /** Goes to a page; the chat page keeps its chat. */
  go(page: Page): void {
    this.page = page;
    this.inboxOpen = false;
  }

  /** Opens Connections at one of them. */
  showServer(server: string, log = false): void {
    this.spotlight = { server, log };
    this.go("connections");
  }

  /** Brings a chat to the front and fetches it. */
  async open(id: ConversationId): Promise<void> {
    this.conversation = id;
    this.go("chat");
    if (!this.view.chats[id]?.loaded) await this.#fetch(id, null);
  }

  /** Goes to the question that waits: the visible chat's, else that of another chat, else the rest. */
  showAsk(): void {
    if (this.asksHere.length === 0) {
      const other = this.view.asks.find((ask) => ask.conversationId !== null);
      if (other?.conversationId) void this.open(other.conversationId);
      else if (this.view.asks.length > 0) this.showInbox();
    }
    if (this.view.asks.length > 0) this.wanted = "ask";
  }

  /** Shows the questions that the visible chat does not. */
  showInbox(): void {
    this.inboxOpen = true;
    this.wanted = "ask";
  }

  /** An empty chat; it exists for the engine once something is sent. */
  newChat(): void {
    this.conversation = null;
    this.go("chat");
    this.wanted = "composer";
  }

  async earlier(): Promise<void> {
    const before = this.chat?.earlier ?? null;
    if (this.conversation !== null && before !== null) await this.#fetch(this.conversation, before);
  }

  /** Sends what the person wrote. True when the engine has it; otherwise the text stays and the error shows. */
  async send(text: string): Promise<boolean> {
    const key = this.conversation ?? "";
    this.clearError(key);
    this.#show({ ...this.#now, lastClosed: null });
    try {
      let id = this.conversation;
      if (id === null) {
        const made = await this.host.rpc("conversation_create", {});
        id = made.id;
        if (!this.view.conversations.some((one) => one.id === made.id)) {
          this.#show({ ...this.#now, conversations: [made, ...this.#now.conversations] });
        }
        if (!this.view.chats[id]) {
          this.#show(addPage(this.#now, { conversation: made, items: [], earlier: null, turn: null }, null));
        }
        this.conversation = id;
      }
      await this.host.rpc("turn_start", { conversationId: id, text });
      return true;
    } catch (thrown) {
      this.fail(thrown);
      return false;
    }
  }

  async stop(): Promise<void> {
    if (this.conversation === null || !this.running) return;
    this.stopping = true;
    await this.attempt("turn_stop", { conversationId: this.conversation });
  }

  /** Answers again: from the start of the last answer, or where it broke off. */
  async retry(goOn: boolean): Promise<void> {
    const id = this.conversation;
    if (id === null) return;
    this.clearError(id);
    try {
      await this.host.rpc("turn_retry", { conversationId: id, continue: goOn });
    } catch (thrown) {
      this.fail(thrown, id);
    }
  }

  /** Gives the answer to a question. One that is already closed is no error to the person. */
  async answer(ask: Ask, option: AskOption): Promise<void> {
    try {
      await this.host.rpc("ask_answer", { id: ask.id, answer: { type: "choice", option } });
    } catch (thrown) {
      const error = toAppError(thrown);
      if (error.code !== "ask.already_closed") this.fail(thrown, ask.conversationId ?? undefined);
    }
  }

  /** Gives a command whose error belongs to the visible chat; the reply is not needed. */
  async attempt<Name extends Parameters<Host["rpc"]>[0]>(name: Name, params: Parameters<typeof this.host.rpc<Name>>[1]): Promise<boolean> {
    try {
      await this.host.rpc(name, params);
      return true;
    } catch (thrown) {
      this.fail(thrown);
      return false;
    }
  }

  /** Shows an error in a chat, the visible one if none is named. */
  fail(thrown: unknown, chat: string = this.conversation ?? ""): void {
    this.chatErrors = { ...this.chatErrors, [chat]: toAppError(thrown) };
  }

  clearError(chat: string = this.conversation ?? ""): void {
    const { [chat]: _gone, ...rest } = this.chatErrors;
    this.chatErrors = rest;
  }
}

/** The message brings nothing but more words of answers that are long already. */
function growsLong(message: FeedMessage): boolean {
  return message.type === "batch" && message.events.every((event) => event.type === "textDelta" && event.at >= LONG);
}

const key = Symbol("app");

/** Puts the app where every component below finds it. */
export function provideApp(app: App): App {
  return setContext(key, app);
}

/** The app, in any component below the root. */
export function useApp(): App {
  return getContext<App>(key);
}
