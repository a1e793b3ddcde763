import type { CommandMap, Event, FeedMessage, Snapshot } from "@/contract/index.ts";
import { HostError, toAppError, type Command, type Host } from "./index.ts";

type Answers = { [Name in Command]?: (params: CommandMap[Name]["params"]) => CommandMap[Name]["reply"] | Promise<CommandMap[Name]["reply"]> };

/** An engine for tests and for the development page: it says what it is told to say and remembers what it was asked. */
export class ScriptedHost implements Host {
  /** Every command, in order. */
  readonly calls: { name: Command; params: unknown }[] = [];
  #seq: number;
  #hear: (message: FeedMessage) => void = () => {};

  /**
   * @param snapshot what a subscription begins with
   * @param answers replies by command; one that is not listed replies `{}`. An answer that throws an AppError rejects with it.
   */
  constructor(
    public snapshot: Snapshot,
    public answers: Answers = {},
  ) {
    this.#seq = snapshot.seq;
  }

  async rpc<Name extends Command>(name: Name, params: CommandMap[Name]["params"]): Promise<CommandMap[Name]["reply"]> {
    this.calls.push({ name, params: structuredClone(params) });
    const answer = this.answers[name];
    try {
      return (answer ? await answer(params) : {}) as CommandMap[Name]["reply"];
    } catch (thrown) {
      throw new HostError(toAppError(thrown));
    }
  }

  async subscribe(onMessage: (message: FeedMessage) => void): Promise<void> {
    this.#hear = onMessage;
    this.#seq = this.snapshot.seq;
    onMessage({ type: "snapshot", ...this.snapshot });
  }

  /** Sends one batch. */
  emit(...events: Event[]): void {
    this.#seq += 1;
    this.#hear({ type: "batch", seq: this.#seq, events });
  }

  /** Loses one batch. */
  skip(): void {
    this.#seq += 1;
  }

  /** The parameters of every call of one command so far. */
  callsOf<Name extends Command>(name: Name): CommandMap[Name]["params"][] {
    return this.calls.filter((call) => call.name === name).map((call) => call.params as CommandMap[Name]["params"]);
  }
}
