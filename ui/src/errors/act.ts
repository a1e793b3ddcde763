import type { Action, AppError } from "@/contract/index.ts";
import { toAppError } from "@/host/index.ts";
import type { App } from "@/state/app.svelte.ts";
import { editModel } from "@/state/editModel.svelte.ts";

/** What doing it again means where the error stands. In a chat it means the answer, and need not be said. */
export interface Again {
  retry?: () => unknown;
  goOn?: () => unknown;
}

function inChat(app: App): boolean {
  return app.page === "chat" && app.conversation !== null;
}

/** Whether a button for `action` would do something here. What only time mends has none. */
export function canAct(app: App, action: Action, again: Again): boolean {
  switch (action.type) {
    case "retry":
      return again.retry !== undefined || inChat(app);
    case "continue":
      return again.goOn !== undefined || inChat(app);
    case "waitUntil":
      return false;
    case "restartServer":
    case "showLog":
    case "openPage":
    case "chooseFolder":
    case "removeFolder":
    case "checkKey":
    case "useModel":
    case "openFile":
    case "openUrl":
      return true;
  }
}

/** Does what a button beside an error says. Gives the error of that, or nothing where it went well. */
export async function act(app: App, action: Action, again: Again): Promise<AppError | null> {
  try {
    switch (action.type) {
      case "retry":
        await (again.retry ? again.retry() : app.retry(false));
        break;
      case "continue":
        await (again.goOn ? again.goOn() : app.retry(true));
        break;
      case "restartServer":
        await app.host.rpc("server_restart", { id: action.server });
        break;
      case "showLog":
        app.showServer(action.server, true);
        break;
      case "openPage":
        app.go(action.page);
        break;
      case "chooseFolder":
        // Without a native picker the folder is written on the connection's own page.
        if (app.view.app.picksFolders) await app.host.rpc("root_pick", { server: action.server });
        else app.showServer(action.server);
        break;
      case "removeFolder":
        await app.host.rpc("root_remove", { server: action.server, path: action.path });
        break;
      case "checkKey":
        editModel.id = action.model;
        app.go("models");
        break;
      case "useModel":
        await app.host.rpc("model_use", { id: action.model });
        if (inChat(app) && app.chat?.turn?.status === "failed") await app.retry(false);
        break;
      case "openFile":
        await app.host.rpc("file_open", { path: action.path });
        break;
      case "openUrl":
        await app.host.rpc("url_open", { url: action.url });
        break;
      case "waitUntil":
        break;
    }
    return null;
  } catch (thrown) {
    return toAppError(thrown);
  }
}
