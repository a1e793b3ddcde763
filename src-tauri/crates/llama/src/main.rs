//! `parley-llama --model FILE [--threads N] [--context N]`: holds one language model and answers prompts on its
//! pipes, one JSON document a line (see [`wire`]). A process of its own, because llama.cpp ends its process when
//! it meets something it cannot take: then this one goes, not the app.
//!
//! Nothing but the protocol ever goes to stdout. The program ends when its stdin closes.

mod held;
mod template;
mod wire;

use held::Held;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use wire::{FailedKind, In, Out};

/// What the reading thread tells the working one while it works.
#[derive(Default)]
struct Signals {
    /// The newest prompt that is to stop. Numbers rise, so one is enough.
    stop: AtomicU64,
    /// stdin has closed.
    over: AtomicBool,
}

impl Signals {
    /// True when the work on prompt `id` is in vain.
    fn stopped(&self, id: u64) -> bool {
        self.over.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed) >= id
    }
}

/// What to run, from the command line.
struct Options {
    model: PathBuf,
    threads: i32,
    context: u32,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(words) => {
            let _ = writeln!(std::io::stderr(), "parley-llama: {words}");
            return ExitCode::from(2);
        }
    };
    if !options.model.is_file() {
        say(&Out::Failed { kind: FailedKind::FileMissing, message: options.model.display().to_string() });
        return ExitCode::FAILURE;
    }
    if !processor_is_enough() {
        say(&Out::Failed {
            kind: FailedKind::Processor,
            message: "AVX2, FMA, F16C and BMI2 are needed".into(),
        });
        return ExitCode::FAILURE;
    }
    let signals = Arc::new(Signals::default());
    let (sender, prompts) = mpsc::channel();
    std::thread::spawn({
        let signals = signals.clone();
        move || read(&signals, &sender)
    });
    match held::with(&options.model, options.threads, options.context, |held| serve(held, &prompts, &signals))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&Out::Failed { kind: FailedKind::Load, message });
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let (mut model, mut threads, mut context) = (None, 1, 4096);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{} needs a value", argument.display()))?;
        let number = || value.to_str().and_then(|v| v.parse::<u32>().ok()).filter(|n| *n > 0);
        match argument.to_str() {
            Some("--model") => model = Some(PathBuf::from(value)),
            Some("--threads") => threads = number().ok_or("--threads needs a number")?,
            Some("--context") => context = number().ok_or("--context needs a number")?,
            _ => return Err(format!("unknown: {}", argument.display())),
        }
    }
    let model = model.ok_or("--model FILE is missing")?;
    Ok(Options { model, threads: i32::try_from(threads).unwrap_or(1), context })
}

/// The instructions llama.cpp is built with here; without them the first sum would end the program.
fn processor_is_enough() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c")
        && std::is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    return true;
}

/// Reads lines until stdin closes. A line that cannot be read is answered and otherwise ignored.
fn read(signals: &Signals, prompts: &mpsc::Sender<wire::Prompt>) {
    for line in std::io::stdin().lock().split(b'\n') {
        let Ok(line) = line else { break };
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(In::Prompt(prompt)) => {
                if prompts.send(*prompt).is_err() {
                    break;
                }
            }
            Ok(In::Stop { id }) => {
                signals.stop.fetch_max(id, Ordering::Relaxed);
            }
            Err(error) => say(&Out::Error { id: None, message: format!("cannot read this line: {error}") }),
        }
    }
    signals.over.store(true, Ordering::Relaxed);
}

/// Answers prompts one after the other until the reader is gone.
fn serve(held: &mut Held<'_>, prompts: &mpsc::Receiver<wire::Prompt>, signals: &Signals) {
    say(&held.ready());
    while let Ok(prompt) = prompts.recv() {
        let id = prompt.id;
        let mut text = |text: &str| say(&Out::Text { id, text: text.to_owned() });
        match held.answer(&prompt, &mut text, &|| signals.stopped(id)) {
            Ok(done) => say(&Out::Done { id, done }),
            Err(message) => say(&Out::Error { id: Some(id), message }),
        }
        if signals.over.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn say(out: &Out) {
    let Ok(mut line) = serde_json::to_vec(out) else { return };
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    // A reader that is gone closes stdin, too.
    let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
}
