//! How well and how fast a model file does its work here:
//! `measure HELPER MODEL.gguf [decide|fresh|turns]`. Prints a line for each prompt and the figures at the end.

use futures::StreamExt as _;
use llm::{Call, Event, Local, LocalOptions, LocalState, Message, Model as _, Request, ToolSpec};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

#[path = "../tests/support/files.rs"]
mod files;

type Prompt = (&'static str, &'static [&'static str], &'static str);

/// What a person says, the tool that is right (several may be), and a text its arguments must hold.
const ENGLISH: [Prompt; 14] = [
    ("What does notes.txt say?", &["read_file"], "notes.txt"),
    ("What files are in my folder?", &["list_folder"], ""),
    ("Show me what's in the invoices folder", &["list_folder"], "invoices"),
    ("Find all PDF files", &["find_files"], "pdf"),
    ("Which file mentions the word Lisbon?", &["search_text"], "Lisbon"),
    ("Summarize report.md for me", &["read_file"], "report.md"),
    ("Create a file called todo.txt with the text buy milk", &["write_file"], "todo.txt"),
    ("Rename draft.txt to final.txt", &["move_file"], "final.txt"),
    ("Delete old.txt", &["trash_file"], "old.txt"),
    ("Where is my file budget.xlsx?", &["find_files"], "budget"),
    ("Hi, how are you?", &[], ""),
    ("What is the capital of France?", &[], ""),
    ("Write me a short poem about rain", &[], ""),
    ("Thank you!", &[], ""),
];

const CHINESE: [Prompt; 14] = [
    ("notes.txt 里写了什么?", &["read_file"], "notes.txt"),
    ("我的文件夹里有哪些文件？", &["list_folder"], ""),
    ("看看 invoices 文件夹里有什么", &["list_folder"], "invoices"),
    ("找出所有 PDF 文件", &["find_files"], "pdf"),
    ("哪个文件里提到了“里斯本”？", &["search_text"], "里斯本"),
    ("帮我总结一下 report.md", &["read_file"], "report.md"),
    ("新建一个文件 todo.txt，内容是“买牛奶”", &["write_file"], "todo.txt"),
    ("把 draft.txt 改名为 final.txt", &["move_file"], "final.txt"),
    ("删除 old.txt", &["trash_file"], "old.txt"),
    ("我的 budget.xlsx 在哪里？", &["find_files"], "budget"),
    ("你好！", &[], ""),
    ("法国的首都是哪里？", &[], ""),
    ("写一首关于雨的短诗", &[], ""),
    ("谢谢你！", &[], ""),
];

/// Prompts that nothing was adjusted to.
const FRESH: [Prompt; 20] = [
    ("Can you open meeting.docx and tell me who was there?", &["read_file"], "meeting.docx"),
    ("I need to know what's inside the Taxes folder", &["list_folder"], "Taxes"),
    ("Do I have any spreadsheets? Look for xlsx", &["find_files"], "xlsx"),
    ("Look through my files for the phrase 'rent increase'", &["search_text"], "rent increase"),
    ("Save a note named ideas.md saying: call the plumber", &["write_file"], "ideas.md"),
    ("Please move photo.jpg into the Pictures folder", &["move_file"], "photo.jpg"),
    ("Throw away the file junk.log", &["trash_file"], "junk.log"),
    ("How many days are there in a leap year?", &[], ""),
    ("Tell me a joke", &[], ""),
    ("Good morning", &[], ""),
    ("打开 meeting.docx，告诉我谁参加了", &["read_file"], "meeting.docx"),
    ("“税务”文件夹里都有什么？", &["list_folder"], "税务"),
    ("我有没有 xlsx 表格？找一下", &["find_files"], "xlsx"),
    ("在我的文件里搜索“涨房租”", &["search_text"], "涨房租"),
    ("把“给水管工打电话”保存到 ideas.md", &["write_file"], "ideas.md"),
    ("请把 photo.jpg 移到 Pictures 文件夹", &["move_file"], "photo.jpg"),
    ("把 junk.log 扔进回收站", &["trash_file"], "junk.log"),
    ("闰年有多少天？", &[], ""),
    ("讲个笑话", &[], ""),
    ("早上好", &[], ""),
];

/// Whole turns: the question, what a tool would give, a text the answer must hold.
const TURNS: [(&str, &str); 6] = [
    ("What does notes.txt say?", "Tuesday"),
    ("When is the meeting in notes.txt?", "Tuesday"),
    ("How much is the invoice in invoices/may.txt?", "420"),
    ("notes.txt 里写了什么？", "Tuesday|星期二|周二"),
    ("invoices/may.txt 里的发票金额是多少？", "420"),
    ("What is in the invoices folder?", "may.txt"),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let helper = PathBuf::from(arguments.next().ok_or("HELPER is missing")?);
    let file = PathBuf::from(arguments.next().ok_or("MODEL is missing")?);
    let what = arguments.next().unwrap_or_else(|| "decide".to_owned());
    let model = Local::new(helper, file, LocalOptions::default());
    let mut out = std::io::stdout();
    let started = Instant::now();
    model.load();
    let mut state = model.watch();
    state
        .wait_for(|s| matches!(s, LocalState::Ready { .. } | LocalState::Failed(_) | LocalState::Absent))
        .await?;
    writeln!(out, "{:?} after {:?}", *state.borrow(), started.elapsed())?;
    match what.as_str() {
        "decide" | "fresh" => {
            let sets: &[(&str, &[Prompt])] =
                if what == "fresh" { &[("fresh", &FRESH)] } else { &[("en", &ENGLISH), ("zh", &CHINESE)] };
            for (language, prompts) in sets {
                let mut right = 0;
                for (question, tools, holds) in prompts.iter() {
                    let begun = Instant::now();
                    let (call, text) = first(&model, question).await?;
                    let time = begun.elapsed();
                    let short = |c: &Call| c.name.trim_start_matches("files__").to_owned();
                    let arguments = call
                        .as_ref()
                        .and_then(|c| c.arguments.as_ref().ok())
                        .map(|a| a.to_string())
                        .unwrap_or_default();
                    let ok = match &call {
                        Some(call) => {
                            tools.contains(&short(call).as_str())
                                && arguments.to_lowercase().contains(&holds.to_lowercase())
                        }
                        None => tools.is_empty(),
                    };
                    right += usize::from(ok);
                    let said = call
                        .as_ref()
                        .map_or(text.chars().take(60).collect(), |c| short(c) + " " + &arguments);
                    writeln!(
                        out,
                        "{} {:>6} ms  {question}  ->  {said}",
                        if ok { "ok " } else { "BAD" },
                        time.as_millis()
                    )?;
                }
                writeln!(out, "{language}: {right} of {}", prompts.len())?;
            }
        }
        _ => {
            let mut right = 0;
            for (question, holds) in TURNS {
                let begun = Instant::now();
                let (trace, text) = turn(&model, question).await?;
                let ok = holds.split('|').any(|h| text.contains(h));
                right += usize::from(ok);
                let figures = match &*model.watch().borrow() {
                    LocalState::Ready { first_token_ms, tokens_per_second } => {
                        format!("first {first_token_ms:?} ms, {tokens_per_second:?} tokens/s")
                    }
                    other => format!("{other:?}"),
                };
                writeln!(
                    out,
                    "{} {:>6} ms  {question}\n      {trace}\n      {text}\n      {figures}",
                    if ok { "ok " } else { "BAD" },
                    begun.elapsed().as_millis()
                )?;
            }
            writeln!(out, "turns: {right} of {}", TURNS.len())?;
        }
    }
    Ok(())
}

fn tools() -> Vec<ToolSpec> {
    files::tools()
}

fn request(messages: Vec<Message>) -> Request {
    Request { system: files::SYSTEM.to_owned(), messages, tools: tools(), max_tokens: None }
}

/// The decision, or the first words of the answer.
async fn first(model: &Local, question: &str) -> Result<(Option<Call>, String), llm::ModelError> {
    let mut stream = model.stream(request(vec![Message::User(question.to_owned())]));
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        match event? {
            Event::Call(call) => return Ok((Some(call), text)),
            Event::Text(more) => {
                text.push_str(&more);
                if text.chars().count() > 20 {
                    break;
                }
            }
            Event::Reasoning(_) | Event::Usage { .. } | Event::Stop(_) | Event::Replay(_) => {}
        }
    }
    Ok((None, text))
}

/// A whole turn against made-up files.
async fn turn(model: &Local, question: &str) -> Result<(String, String), llm::ModelError> {
    let mut messages = vec![Message::User(question.to_owned())];
    let mut trace = String::new();
    for _ in 0..4 {
        let mut stream = model.stream(request(messages.clone()));
        let (mut text, mut calls) = (String::new(), Vec::new());
        while let Some(event) = stream.next().await {
            match event? {
                Event::Call(call) => calls.push(call),
                Event::Text(more) => text.push_str(&more),
                Event::Reasoning(_) | Event::Usage { .. } | Event::Stop(_) | Event::Replay(_) => {}
            }
        }
        let Some(call) = calls.pop() else { return Ok((trace, text)) };
        let (result, is_error) = files::run(&call);
        trace.push_str(&format!("{} {:?} ", call.name, call.arguments));
        messages.push(Message::Assistant { text, calls: vec![call.clone()], replay: None });
        messages.push(Message::ToolResult { call_id: call.id, name: call.name, text: result, is_error });
    }
    Ok((trace, "(no answer)".to_owned()))
}
