import type { AuditOutcome, AuditRow } from "@/contract/index.ts";
import { m } from "@/i18n.svelte.ts";
import { oneLine } from "@/words/oneLine.ts";
import { fileTool, type FileTool } from "@/words/tools.ts";

/** A row told as a person would: what happened, and below it what came of it. */
export type Sentence = { title: string; below: string | null };

type Said = { named: (object: string) => string; plain: () => string };

const did: Record<FileTool, Said> = {
  list_folder: { named: (object) => m["activity.files.list_folder.did"]({ object }), plain: m["activity.files.list_folder.didPlain"] },
  read_file: { named: (object) => m["activity.files.read_file.did"]({ object }), plain: m["activity.files.read_file.didPlain"] },
  find_files: { named: (object) => m["activity.files.find_files.did"]({ object }), plain: m["activity.files.find_files.didPlain"] },
  search_text: { named: (object) => m["activity.files.search_text.did"]({ object }), plain: m["activity.files.search_text.didPlain"] },
  write_file: { named: (object) => m["activity.files.write_file.did"]({ object }), plain: m["activity.files.write_file.didPlain"] },
  move_file: { named: (object) => m["activity.files.move_file.did"]({ object }), plain: m["activity.files.move_file.didPlain"] },
  trash_file: { named: (object) => m["activity.files.trash_file.did"]({ object }), plain: m["activity.files.trash_file.didPlain"] },
};

const wanted: Record<FileTool, Said> = {
  list_folder: { named: (object) => m["activity.files.list_folder.wanted"]({ object }), plain: m["activity.files.list_folder.wantedPlain"] },
  read_file: { named: (object) => m["activity.files.read_file.wanted"]({ object }), plain: m["activity.files.read_file.wantedPlain"] },
  find_files: { named: (object) => m["activity.files.find_files.wanted"]({ object }), plain: m["activity.files.find_files.wantedPlain"] },
  search_text: { named: (object) => m["activity.files.search_text.wanted"]({ object }), plain: m["activity.files.search_text.wantedPlain"] },
  write_file: { named: (object) => m["activity.files.write_file.wanted"]({ object }), plain: m["activity.files.write_file.wantedPlain"] },
  move_file: { named: (object) => m["activity.files.move_file.wanted"]({ object }), plain: m["activity.files.move_file.wantedPlain"] },
  trash_file: { named: (object) => m["activity.files.trash_file.wanted"]({ object }), plain: m["activity.files.trash_file.wantedPlain"] },
};

/** Tells `row`; `server` is what its connection is called on screen. */
export function sentence(row: AuditRow, server: string): Sentence {
  const done = row.outcome === "allowed";
  const object = row.object === null ? null : oneLine(row.object) || null;
  const nothing = done ? null : m["activity.nothing"]();
  switch (row.kind) {
    case "tool": {
      const given = row.reader === null ? null : m["activity.given"]({ reader: oneLine(row.reader) });
      const below = done ? given : nothing;
      const ours = fileTool(row.server, row.tool);
      if (ours !== null) {
        const said = (done ? did : wanted)[ours];
        return { title: object === null ? said.plain() : said.named(object), below };
      }
      const tool = oneLine(row.tool ?? "") || m["errors.some.tool"]();
      return { title: done ? m["activity.tool.did"]({ server, tool }) : m["activity.tool.wanted"]({ server, tool }), below };
    }
    case "launch":
      return {
        title: done ? m["activity.launch.did"]({ server }) : m["activity.launch.wanted"]({ server }),
        below: done ? (object === null ? null : m["activity.program"]({ object })) : m["activity.notStarted"](),
      };
    case "connect":
      return {
        title:
          object === null
            ? done
              ? m["activity.connect.didPlain"]({ server })
              : m["activity.connect.wantedPlain"]({ server })
            : done
              ? m["activity.connect.did"]({ server, object })
              : m["activity.connect.wanted"]({ server, object }),
        below: done ? null : m["activity.notConnected"](),
      };
    case "url":
      return {
        title:
          object === null
            ? done
              ? m["activity.url.didPlain"]({ server })
              : m["activity.url.wantedPlain"]({ server })
            : done
              ? m["activity.url.did"]({ server, object })
              : m["activity.url.wanted"]({ server, object }),
        below: done ? null : m["activity.notOpened"](),
      };
    case "sampling":
      return {
        title: done ? m["activity.sampling.did"]({ server }) : m["activity.sampling.wanted"]({ server }),
        below: done && row.reader !== null ? m["activity.given"]({ reader: oneLine(row.reader) }) : nothing,
      };
    case "sampling-reply":
      return {
        title: done ? m["activity.samplingReply.did"]({ server }) : m["activity.samplingReply.wanted"]({ server }),
        below: nothing,
      };
    case "form":
      return { title: done ? m["activity.form.did"]({ server }) : m["activity.form.wanted"]({ server }), below: nothing };
    case "sign-in":
      return { title: done ? m["activity.signIn.did"]({ server }) : m["activity.signIn.wanted"]({ server }), below: nothing };
    case "folder":
      return {
        title: done ? m["activity.folder.did"]({ server }) : m["activity.folder.wanted"]({ server }),
        below: done ? object : nothing,
      };
  }
}

/** Who decided and how, in words. */
export function outcomeText(row: AuditRow): string {
  switch (row.outcome) {
    case "allowed":
      if (row.actor === "person") return m["activity.outcome.allowedPerson"]();
      return row.actor === "policy" ? m["activity.outcome.allowedPolicy"]() : m["activity.outcome.allowedApp"]();
    case "denied":
      if (row.actor === "person") return m["activity.outcome.deniedPerson"]();
      return row.actor === "policy" ? m["activity.outcome.deniedPolicy"]() : m["activity.outcome.deniedApp"]();
    case "withdrawn":
      return m["activity.outcome.withdrawn"]();
    case "expired":
      return m["activity.outcome.expired"]();
    case "turnStopped":
      return m["activity.outcome.turnStopped"]();
  }
}

/** The outcomes behind each filter. */
export function isRefusal(outcome: AuditOutcome): boolean {
  return outcome !== "allowed";
}
