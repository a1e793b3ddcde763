import type { Conversation, Item, Settings, Snapshot } from "@/contract/index.ts";
import { ScriptedHost } from "@/host/scripted.ts";
import { appError, ask, connectAsk, conversation, item, launchAsk, model, remote, server, snapshot, toolCall, toolSubject, turn } from "../tests/fixtures.ts";

interface Look {
  language: "en" | "zh-CN";
  theme: Settings["theme"];
}

const DAY = 86_400_000;

/** A scripted engine that shows one state. */
export function scene(name: string, look: Look): ScriptedHost {
  const zh = look.language === "zh-CN";
  const say = (en: string, chinese: string) => (zh ? chinese : en);
  const now = Date.now();
  const chats: Conversation[] = [
    conversation("sort", say("Sorting photos", "整理照片"), now - 3 * DAY),
    conversation("c1", say("Heating offers", "供暖报价对比"), now),
    conversation("c2", say("Letter to the landlord", "给房东的信"), now - 60_000),
    conversation("c3", say("Lisbon photos by day", "里斯本照片按天整理"), now - DAY),
    conversation("c4", say("Tax papers 2025", "2025 年报税资料"), now - DAY - 60_000),
    conversation("c5", say("Soup for twelve", "十二人份的汤"), now - 4 * DAY),
    conversation("c6", say("Refund for the lamp", "台灯退款"), now - 5 * DAY),
    conversation("c7", say("Reading list", "书单"), now - 6 * DAY),
  ];
  const house = say("House", "房子");
  const brandt = say("Offer Brandt.pdf", "布兰特报价.pdf");
  const solvent = say("Offer Solvent.docx", "索文特报价.docx");
  const files = server({ title: say("Files", "文件"), roots: [{ path: `/home/mira/${house}`, name: house, missing: false }] });
  const filesCall = (over: Parameters<typeof toolCall>[0]) => toolCall({ serverTitle: files.title, ...over });
  const base: Partial<Snapshot> = {
    conversations: chats,
    turns: [turn("sort")],
    servers: [
      files,
      server({ id: "notes", title: "Notes", builtIn: false, roots: [] }),
      server({ id: "mail", title: "Mail", builtIn: false, roots: [] }),
      server({ id: "calendar", title: "Calendar", builtIn: false, roots: [], status: "failed", error: appError({ code: "server.program_missing", params: { server: "Calendar", program: "Node.js" }, actions: [{ type: "openUrl", url: "https://nodejs.org/" }, { type: "restartServer", server: "calendar" }] }) }),
    ],
    settings: { language: look.language, effectiveLanguage: look.language, theme: look.theme, welcomed: true },
  };
  const sorting = item("sort", 1, filesCall({ tool: "sort", status: "running", progress: { value: 62, total: 100, message: null }, startedAt: now }));

  const talk: Item[] = [
    item("c1", 1, { kind: "user", text: say("Compare the two heating offers in House. Which one suits a small flat better?", "对比一下“房子”文件夹里的两份供暖报价，哪一份更适合小户型？") }),
    item("c1", 2, { kind: "assistant", model: "Qwen 1.5B", text: say("I’ll read both offers and look for what the building’s rules say about heat pumps.", "我先看两份报价，再查一下物业规定里关于热泵的说法。") }),
    item("c1", 3, filesCall({ arguments: { path: `Offers/${brandt}` } })),
    item("c1", 4, filesCall({ tool: "search_text", arguments: { text: say("heat pump", "热泵"), folder: house }, status: "running", progress: { value: 214, total: 380, message: say("214 of 380 documents", "已查 214 个文件，共 380 个") }, startedAt: now - 12_000, endedAt: null, result: null })),
    item("c1", 5, filesCall({ arguments: { path: `Offers/${solvent}` }, status: "asking", startedAt: null, endedAt: null, result: null })),
    item("c1", 6, { kind: "assistant", model: "Qwen 1.5B", text: say("Brandt offers a 6 kW heat pump for **€11,840**, fitted in two days, with a seven-year warranty. Taking the old boiler away is included. The electrician is not, and that often adds", "布兰特的方案是一台 6 kW 热泵，报价 **11,840 欧元**，两天装好，质保七年，含旧锅炉的拆运。不含电工费用，这一项通常还要") }, "streaming"),
  ];
  const readAsk = (id: string, file: string) =>
    ask({ id, itemId: "c1-5", serverTitle: files.title, subject: toolSubject({ arguments: { path: `Offers/${file}` }, target: { crumbs: [house, say("Offers", "报价"), file], isFolder: false, bytes: 84_000 } }) });

  const pages: Record<string, Item[]> = { c1: talk, sort: [sorting] };
  let over: Partial<Snapshot> = {};
  switch (name) {
    case "welcome":
      over = { settings: { ...base.settings!, welcomed: false }, conversations: [], turns: [] };
      break;
    case "asking":
      over = { turns: [turn("c1"), turn("sort")], asks: [readAsk("a1", solvent), readAsk("a2", brandt)] };
      break;
    case "trash":
      over = {
        turns: [turn("c1"), turn("sort")],
        asks: [ask({ id: "a3", level: "L3", serverTitle: files.title, options: ["deny", "allowOnce"], subject: toolSubject({ tool: "trash_file", arguments: { path: `Offers/${brandt}` }, target: { crumbs: [house, say("Offers", "报价"), brandt], isFolder: false, bytes: 84_000 } }) })],
      };
      break;
    case "write":
      over = {
        turns: [turn("c1"), turn("sort")],
        asks: [ask({ id: "a4", level: "L2", serverTitle: files.title, options: ["deny", "allowOnce", "allowChat"], subject: toolSubject({ tool: "write_file", arguments: { path: "Comparison.md", text: "a\n".repeat(14) }, target: { crumbs: [house, say("Comparison.md", "对比.md")], isFolder: false, bytes: null } }) })],
      };
      break;
    case "stranger":
      over = {
        turns: [turn("c1"), turn("sort")],
        asks: [
          ask({ id: "a5", level: "L2", server: "notes", serverTitle: "Notes", builtIn: false, options: ["deny", "allowOnce", "allowChat"], subject: toolSubject({ tool: "send_page", title: "Allow", description: "Sends a page to someone.\nUse it when the person asks.\n".repeat(8), arguments: { page: "24 November", to: ["mira@lampandco.example"] }, target: null, reader: remote, changed: true }) }),
        ],
      };
      break;
    case "inbox":
      over = { asks: [launchAsk(), connectAsk(), readAsk("a1", solvent)] };
      break;
    case "steps":
      pages["c1"] = [
        talk[0]!,
        ...(["pending", "asking", "running"] as const).map((status, at) => item("c1", 10 + at, filesCall({ status, startedAt: now - 100_000, endedAt: null, result: null, progress: status === "running" ? { value: 3, total: null, message: say("Looking at pictures", "正在看图片") } : null }))),
        item("c1", 20, filesCall({ status: "done" })),
        item("c1", 21, filesCall({ status: "error", result: { parts: [{ type: "text", text: "The document is locked.", blob: null }], shortenedFrom: null } })),
        item("c1", 22, filesCall({ status: "declined", tool: "trash_file", result: null })),
        item("c1", 23, filesCall({ status: "cancelled", server: "photos", serverTitle: "Photos", builtIn: false, tool: "sort", title: "Sort the photos of the summer in Portugal by day, place and people, and put doubles aside" })),
        item("c1", 24, { kind: "assistant", model: "x", text: say("One more.", "还有。") }),
        ...[1, 2, 3, 4, 5, 6].map((at) => item("c1", 30 + at, filesCall({ arguments: { path: `${at}.pdf` } }))),
      ];
      over = { turns: [turn("c1"), turn("sort")] };
      break;
    case "error":
      pages["c1"] = [
        item("c1", 1, { kind: "user", text: say("So which one would you take?", "那你会选哪一个？") }),
        item("c1", 2, { kind: "assistant", model: "DeepSeek", text: say("For a small flat I’d lean towards Brandt. Three reasons:\n\n- The 6 kW unit is enough for 58 m², while Solvent’s 9 kW unit would switch on and off a lot.\n- The warranty is two years longer.\n- Brandt’s fitters need two days instead of", "小户型的话我倾向布兰特。三个理由：\n\n- 6 kW 对 58 平方米够用。\n- 质保多两年。\n- 布兰特只要两天，不用") }, "interrupted"),
        item("c1", 3, { kind: "notice", error: appError() }),
      ];
      break;
    case "text":
      pages["c1"] = [
        item("c1", 1, { kind: "user", text: say("Show me everything you can write.", "把你能写的都给我看看。") }),
        item("c1", 2, { kind: "assistant", model: "x", text: "# First\n\nA **bold** word, *another*, `code`, ~~gone~~, a [link](https://example.com/page), a ![chart](https://example.com/a.png) and <b>markup</b> &amp; more.\n\n1. one\n2. two\n   - inner\n   - [x] done\n\n> Quoted words\n> on two lines\n\n| Offer | Price | Days |\n|:--|--:|--:|\n| Brandt | 11,840 | 2 |\n| Solvent | 12,400 | 4 |\n\n```python\ndef offer(price: int) -> str:\n    # the larger one\n    return f\"{price} €\" if price > 10 else None\n```\n\n---\n\nEnd." }),
      ];
      break;
  }

  const host: ScriptedHost = new ScriptedHost(snapshot({ ...base, models: { models: [model(), model({ id: "deepseek", provider: "openai-compatible", title: "DeepSeek Chat", name: "deepseek-chat", local: false, host: "api.deepseek.com", baseUrl: "https://api.deepseek.com/v1", hasKey: true, onDevice: null })], active: name === "error" ? "deepseek" : "qwen" }, ...over }), {
    conversation_open: ({ id }) => ({
      conversation: chats.find((one) => one.id === id) ?? chats[0]!,
      items: pages[id] ?? [],
      earlier: null,
      turn: host.snapshot.turns.find((one) => one.conversationId === id) ?? null,
    }),
    conversation_search: () => [],
    policy_list: () => [],
    audit_list: () => [],
    server_log: () => [],
    ask_answer: ({ id, answer }) => {
      host.emit({ type: "askClosed", id, outcome: answer.option === "deny" ? "denied" : "allowed" });
      return {};
    },
  });
  // Work in a chat that is not open is known from the feed only.
  setTimeout(() => host.emit({ type: "itemStarted", item: sorting }));
  return host;
}
