// The drawings we use, from Phosphor (MIT). A name with no ending is the regular weight; one line here adds another.
import chats from "@phosphor-icons/core/assets/regular/chats.svg?path";
import plugsConnected from "@phosphor-icons/core/assets/regular/plugs-connected.svg?path";
import shieldCheck from "@phosphor-icons/core/assets/regular/shield-check.svg?path";
import clockCounterClockwise from "@phosphor-icons/core/assets/regular/clock-counter-clockwise.svg?path";
import cpu from "@phosphor-icons/core/assets/regular/cpu.svg?path";
import gearSix from "@phosphor-icons/core/assets/regular/gear-six.svg?path";
import eye from "@phosphor-icons/core/assets/regular/eye.svg?path";
import bookOpenText from "@phosphor-icons/core/assets/regular/book-open-text.svg?path";
import pencilSimple from "@phosphor-icons/core/assets/regular/pencil-simple.svg?path";
import warningOctagon from "@phosphor-icons/core/assets/regular/warning-octagon.svg?path";
import terminalWindow from "@phosphor-icons/core/assets/regular/terminal-window.svg?path";
import globeSimple from "@phosphor-icons/core/assets/regular/globe-simple.svg?path";
import check from "@phosphor-icons/core/assets/regular/check.svg?path";
import checkCircle from "@phosphor-icons/core/assets/regular/check-circle.svg?path";
import warningCircle from "@phosphor-icons/core/assets/regular/warning-circle.svg?path";
import prohibit from "@phosphor-icons/core/assets/regular/prohibit.svg?path";
import stop from "@phosphor-icons/core/assets/regular/stop.svg?path";
import handPalm from "@phosphor-icons/core/assets/regular/hand-palm.svg?path";
import signIn from "@phosphor-icons/core/assets/regular/sign-in.svg?path";
import signOut from "@phosphor-icons/core/assets/regular/sign-out.svg?path";
import power from "@phosphor-icons/core/assets/regular/power.svg?path";
import desktop from "@phosphor-icons/core/assets/regular/desktop.svg?path";
import cloud from "@phosphor-icons/core/assets/regular/cloud.svg?path";
import folder from "@phosphor-icons/core/assets/regular/folder.svg?path";
import folderOpen from "@phosphor-icons/core/assets/regular/folder-open.svg?path";
import folderPlus from "@phosphor-icons/core/assets/regular/folder-plus.svg?path";
import folderLock from "@phosphor-icons/core/assets/regular/folder-lock.svg?path";
import key from "@phosphor-icons/core/assets/regular/key.svg?path";
import lockSimple from "@phosphor-icons/core/assets/regular/lock-simple.svg?path";
import paperPlaneTilt from "@phosphor-icons/core/assets/regular/paper-plane-tilt.svg?path";
import notePencil from "@phosphor-icons/core/assets/regular/note-pencil.svg?path";
import magnifyingGlass from "@phosphor-icons/core/assets/regular/magnifying-glass.svg?path";
import listMagnifyingGlass from "@phosphor-icons/core/assets/regular/list-magnifying-glass.svg?path";
import dotsThree from "@phosphor-icons/core/assets/regular/dots-three.svg?path";
import caretRight from "@phosphor-icons/core/assets/regular/caret-right.svg?path";
import caretDown from "@phosphor-icons/core/assets/regular/caret-down.svg?path";
import caretUp from "@phosphor-icons/core/assets/regular/caret-up.svg?path";
import caretLeft from "@phosphor-icons/core/assets/regular/caret-left.svg?path";
import arrowUp from "@phosphor-icons/core/assets/regular/arrow-up.svg?path";
import plus from "@phosphor-icons/core/assets/regular/plus.svg?path";
import minus from "@phosphor-icons/core/assets/regular/minus.svg?path";
import x from "@phosphor-icons/core/assets/regular/x.svg?path";
import copy from "@phosphor-icons/core/assets/regular/copy.svg?path";
import arrowSquareOut from "@phosphor-icons/core/assets/regular/arrow-square-out.svg?path";
import fileText from "@phosphor-icons/core/assets/regular/file-text.svg?path";
import storefront from "@phosphor-icons/core/assets/regular/storefront.svg?path";
import flask from "@phosphor-icons/core/assets/regular/flask.svg?path";
import scissors from "@phosphor-icons/core/assets/regular/scissors.svg?path";
import wifiSlash from "@phosphor-icons/core/assets/regular/wifi-slash.svg?path";
import trash from "@phosphor-icons/core/assets/regular/trash.svg?path";
import arrowClockwise from "@phosphor-icons/core/assets/regular/arrow-clockwise.svg?path";
import arrowCounterClockwise from "@phosphor-icons/core/assets/regular/arrow-counter-clockwise.svg?path";
import info from "@phosphor-icons/core/assets/regular/info.svg?path";
import shieldWarning from "@phosphor-icons/core/assets/regular/shield-warning.svg?path";
import calendarBlank from "@phosphor-icons/core/assets/regular/calendar-blank.svg?path";
import downloadSimple from "@phosphor-icons/core/assets/regular/download-simple.svg?path";
import exportIcon from "@phosphor-icons/core/assets/regular/export.svg?path";
import linkSimple from "@phosphor-icons/core/assets/regular/link-simple.svg?path";
import circleNotch from "@phosphor-icons/core/assets/regular/circle-notch.svg?path";
import hardDrive from "@phosphor-icons/core/assets/regular/hard-drive.svg?path";
import hourglass from "@phosphor-icons/core/assets/regular/hourglass.svg?path";
import warning from "@phosphor-icons/core/assets/regular/warning.svg?path";
import wrench from "@phosphor-icons/core/assets/regular/wrench.svg?path";
import translate from "@phosphor-icons/core/assets/regular/translate.svg?path";
import sun from "@phosphor-icons/core/assets/regular/sun.svg?path";
import moon from "@phosphor-icons/core/assets/regular/moon.svg?path";
import textAa from "@phosphor-icons/core/assets/regular/text-aa.svg?path";
import slidersHorizontal from "@phosphor-icons/core/assets/regular/sliders-horizontal.svg?path";
import chatText from "@phosphor-icons/core/assets/regular/chat-text.svg?path";
import pause from "@phosphor-icons/core/assets/regular/pause.svg?path";
import imageIcon from "@phosphor-icons/core/assets/regular/image.svg?path";
import file from "@phosphor-icons/core/assets/regular/file.svg?path";
import database from "@phosphor-icons/core/assets/regular/database.svg?path";
import keyboard from "@phosphor-icons/core/assets/regular/keyboard.svg?path";
import question from "@phosphor-icons/core/assets/regular/question.svg?path";
import timer from "@phosphor-icons/core/assets/regular/timer.svg?path";
import imageBroken from "@phosphor-icons/core/assets/regular/image-broken.svg?path";
import chatsFill from "@phosphor-icons/core/assets/fill/chats-fill.svg?path";
import plugsConnectedFill from "@phosphor-icons/core/assets/fill/plugs-connected-fill.svg?path";
import shieldCheckFill from "@phosphor-icons/core/assets/fill/shield-check-fill.svg?path";
import clockCounterClockwiseFill from "@phosphor-icons/core/assets/fill/clock-counter-clockwise-fill.svg?path";
import cpuFill from "@phosphor-icons/core/assets/fill/cpu-fill.svg?path";
import gearSixFill from "@phosphor-icons/core/assets/fill/gear-six-fill.svg?path";
import checkCircleFill from "@phosphor-icons/core/assets/fill/check-circle-fill.svg?path";
import warningCircleFill from "@phosphor-icons/core/assets/fill/warning-circle-fill.svg?path";
import warningOctagonFill from "@phosphor-icons/core/assets/fill/warning-octagon-fill.svg?path";
import stopFill from "@phosphor-icons/core/assets/fill/stop-fill.svg?path";
import warningFill from "@phosphor-icons/core/assets/fill/warning-fill.svg?path";
import pauseFill from "@phosphor-icons/core/assets/fill/pause-fill.svg?path";
import caretRightBold from "@phosphor-icons/core/assets/bold/caret-right-bold.svg?path";
import caretDownBold from "@phosphor-icons/core/assets/bold/caret-down-bold.svg?path";
import caretUpBold from "@phosphor-icons/core/assets/bold/caret-up-bold.svg?path";
import caretLeftBold from "@phosphor-icons/core/assets/bold/caret-left-bold.svg?path";
import dotsThreeBold from "@phosphor-icons/core/assets/bold/dots-three-bold.svg?path";
import checkBold from "@phosphor-icons/core/assets/bold/check-bold.svg?path";
import xBold from "@phosphor-icons/core/assets/bold/x-bold.svg?path";
import plusBold from "@phosphor-icons/core/assets/bold/plus-bold.svg?path";

/** Path data by icon name. */
export const icons = {
  "chats": chats,
  "plugs-connected": plugsConnected,
  "shield-check": shieldCheck,
  "clock-counter-clockwise": clockCounterClockwise,
  "cpu": cpu,
  "gear-six": gearSix,
  "eye": eye,
  "book-open-text": bookOpenText,
  "pencil-simple": pencilSimple,
  "warning-octagon": warningOctagon,
  "terminal-window": terminalWindow,
  "globe-simple": globeSimple,
  "check": check,
  "check-circle": checkCircle,
  "warning-circle": warningCircle,
  "prohibit": prohibit,
  "stop": stop,
  "hand-palm": handPalm,
  "sign-in": signIn,
  "sign-out": signOut,
  "power": power,
  "desktop": desktop,
  "cloud": cloud,
  "folder": folder,
  "folder-open": folderOpen,
  "folder-plus": folderPlus,
  "folder-lock": folderLock,
  "key": key,
  "lock-simple": lockSimple,
  "paper-plane-tilt": paperPlaneTilt,
  "note-pencil": notePencil,
  "magnifying-glass": magnifyingGlass,
  "list-magnifying-glass": listMagnifyingGlass,
  "dots-three": dotsThree,
  "caret-right": caretRight,
  "caret-down": caretDown,
  "caret-up": caretUp,
  "caret-left": caretLeft,
  "arrow-up": arrowUp,
  "plus": plus,
  "minus": minus,
  "x": x,
  "copy": copy,
  "arrow-square-out": arrowSquareOut,
  "file-text": fileText,
  "storefront": storefront,
  "flask": flask,
  "scissors": scissors,
  "wifi-slash": wifiSlash,
  "trash": trash,
  "arrow-clockwise": arrowClockwise,
  "arrow-counter-clockwise": arrowCounterClockwise,
  "info": info,
  "shield-warning": shieldWarning,
  "calendar-blank": calendarBlank,
  "download-simple": downloadSimple,
  "export": exportIcon,
  "link-simple": linkSimple,
  "circle-notch": circleNotch,
  "hard-drive": hardDrive,
  "hourglass": hourglass,
  "warning": warning,
  "wrench": wrench,
  "translate": translate,
  "sun": sun,
  "moon": moon,
  "text-aa": textAa,
  "sliders-horizontal": slidersHorizontal,
  "chat-text": chatText,
  "pause": pause,
  "image": imageIcon,
  "file": file,
  "database": database,
  "keyboard": keyboard,
  "question": question,
  "timer": timer,
  "image-broken": imageBroken,
  "chats-fill": chatsFill,
  "plugs-connected-fill": plugsConnectedFill,
  "shield-check-fill": shieldCheckFill,
  "clock-counter-clockwise-fill": clockCounterClockwiseFill,
  "cpu-fill": cpuFill,
  "gear-six-fill": gearSixFill,
  "check-circle-fill": checkCircleFill,
  "warning-circle-fill": warningCircleFill,
  "warning-octagon-fill": warningOctagonFill,
  "stop-fill": stopFill,
  "warning-fill": warningFill,
  "pause-fill": pauseFill,
  "caret-right-bold": caretRightBold,
  "caret-down-bold": caretDownBold,
  "caret-up-bold": caretUpBold,
  "caret-left-bold": caretLeftBold,
  "check-bold": checkBold,
  "dots-three-bold": dotsThreeBold,
  "x-bold": xBold,
  "plus-bold": plusBold,
} as const;

export type IconName = keyof typeof icons;
