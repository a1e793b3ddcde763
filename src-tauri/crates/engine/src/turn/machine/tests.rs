use super::*;

type In = Input<&'static str, &'static str>;

/// Feeds a script and gives back what each input led to, as one line per input.
fn run(machine: &mut Machine<&'static str>, inputs: Vec<In>) -> String {
    inputs.into_iter().map(|input| format!("{:?}\n", machine.step(input))).collect()
}

fn check(inputs: Vec<In>, expected: &str) {
    let mut machine = Machine::new(Limits { rounds: 2, retries: 1 });
    let got = run(&mut machine, inputs);
    let want: String =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(got, want);
}

fn text(t: &str) -> In {
    Input::Text(t.to_owned())
}

#[test]
fn a_plain_answer_completes() {
    check(
        vec![Input::Begin, text("Hel"), text(""), text("lo"), Input::ModelEnded],
        r#"[Request]
           [Append("Hel")]
           []
           [Append("lo")]
           [EndText(Complete), Finish(Completed)]"#,
    );
}

#[test]
fn calls_start_only_when_the_answer_is_whole_and_are_all_recorded_first() {
    check(
        vec![Input::Begin, text("I look"), Input::Call("a"), Input::Call("b"), Input::ModelEnded],
        r#"[Request]
           [Append("I look")]
           []
           []
           [EndText(Complete), Record(CallKey(0), "a"), Record(CallKey(1), "b"), Authorize(CallKey(0)), Authorize(CallKey(1))]"#,
    );
}

#[test]
fn the_next_request_waits_for_every_result() {
    let (a, b) = (CallKey(0), CallKey(1));
    check(
        vec![
            Input::Begin,
            Input::Call("a"),
            Input::Call("b"),
            Input::ModelEnded,
            Input::Authorized(a),
            Input::Declined(b),
            Input::Ended(a),
            text("done"),
            Input::ModelEnded,
        ],
        r#"[Request]
           []
           []
           [Record(CallKey(0), "a"), Record(CallKey(1), "b"), Authorize(CallKey(0)), Authorize(CallKey(1))]
           [Run(CallKey(0))]
           [SettleDeclined(CallKey(1))]
           [Request]
           [Append("done")]
           [EndText(Complete), Finish(Completed)]"#,
    );
}

#[test]
fn stop_keeps_the_text_and_settles_every_call() {
    check(
        vec![Input::Begin, text("Par"), Input::Stop, text("late"), Input::ModelEnded],
        r#"[Request]
           [Append("Par")]
           [DropModel, EndText(Interrupted), Finish(Interrupted)]
           []
           []"#,
    );
    check(
        vec![
            Input::Begin,
            Input::Call("a"),
            Input::Call("b"),
            Input::ModelEnded,
            Input::Authorized(CallKey(0)),
            Input::Stop,
            Input::Ended(CallKey(0)),
        ],
        r#"[Request]
           []
           []
           [Record(CallKey(0), "a"), Record(CallKey(1), "b"), Authorize(CallKey(0)), Authorize(CallKey(1))]
           [Run(CallKey(0))]
           [SettleCancelled(CallKey(0)), SettleCancelled(CallKey(1)), Finish(Interrupted)]
           []"#,
    );
}

#[test]
fn one_stopped_call_leaves_the_turn_going() {
    let a = CallKey(0);
    check(
        vec![
            Input::Begin,
            Input::Call("a"),
            Input::ModelEnded,
            Input::Authorized(a),
            Input::CallStopped(a),
            Input::Ended(a),
            Input::CallStopped(a),
        ],
        r#"[Request]
           []
           [Record(CallKey(0), "a"), Authorize(CallKey(0))]
           [Run(CallKey(0))]
           [SettleCancelled(CallKey(0)), Request]
           [Report("a call moved while none was open")]
           []"#,
    );
}

#[test]
fn a_failed_request_is_sent_again_only_before_any_text_and_only_so_often() {
    let failed = || Input::ModelFailed { error: "busy", again: true };
    check(
        vec![Input::Begin, failed(), Input::Waited, failed()],
        r#"[Request]
           [WaitAndRequest("busy")]
           [Request]
           [Finish(Failed("busy"))]"#,
    );
    check(
        vec![Input::Begin, text("Half"), failed()],
        r#"[Request]
           [Append("Half")]
           [EndText(Failed), Finish(Failed("busy"))]"#,
    );
}

#[test]
fn a_stop_while_waiting_to_send_again_ends_the_turn() {
    check(
        vec![Input::Begin, Input::ModelFailed { error: "busy", again: true }, Input::Stop],
        r#"[Request]
           [WaitAndRequest("busy")]
           [DropModel, Finish(Interrupted)]"#,
    );
}

#[test]
fn a_cut_answer_runs_none_of_its_calls() {
    check(
        vec![Input::Begin, Input::Call("a"), Input::ModelFailed { error: "cut", again: false }],
        r#"[Request]
           []
           [Finish(Failed("cut"))]"#,
    );
}

#[test]
fn rounds_are_limited() {
    let round = |key| {
        vec![Input::Call("x"), Input::ModelEnded, Input::Authorized(CallKey(key)), Input::Ended(CallKey(key))]
    };
    let mut inputs = vec![Input::Begin];
    inputs.extend(round(0));
    inputs.extend(round(1));
    inputs.extend([Input::Call("x"), Input::ModelEnded]);
    let mut machine = Machine::new(Limits { rounds: 2, retries: 1 });
    let log = run(&mut machine, inputs);
    assert!(log.ends_with("[Finish(RoundLimit)]\n"), "{log}");
    assert!(machine.is_done());
}

#[test]
fn a_save_that_fails_ends_the_turn_and_cancels_what_runs() {
    check(
        vec![
            Input::Begin,
            Input::Call("a"),
            Input::ModelEnded,
            Input::Authorized(CallKey(0)),
            Input::SaveFailed("full"),
        ],
        r#"[Request]
           []
           [Record(CallKey(0), "a"), Authorize(CallKey(0))]
           [Run(CallKey(0))]
           [SettleCancelled(CallKey(0)), Finish(Failed("full"))]"#,
    );
}

/// Whatever comes in whatever order: one `Finish` at most, nothing after it, no call runs unauthorised or is
/// settled twice, and every recorded call is settled when the turn ends.
#[test]
fn invariants_hold_for_any_order_of_inputs() {
    let inputs = || -> Vec<In> {
        vec![
            Input::Begin,
            text("t"),
            Input::Call("c"),
            Input::ModelEnded,
            Input::ModelFailed { error: "e", again: true },
            Input::Waited,
            Input::Authorized(CallKey(0)),
            Input::Declined(CallKey(0)),
            Input::Ended(CallKey(0)),
            Input::CallStopped(CallKey(1)),
            Input::Authorized(CallKey(1)),
            Input::Ended(CallKey(1)),
            Input::Stop,
        ]
    };
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut machine = Machine::new(Limits { rounds: 3, retries: 1 });
        let (mut recorded, mut settled, mut running, mut authorised) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut finished = 0;
        for _ in 0..40 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let options = inputs();
            let input = options[(state >> 33) as usize % options.len()].clone();
            let before: Vec<_> = running.clone();
            if let Input::Authorized(key) = &input {
                authorised.push(*key);
            }
            let ended = match &input {
                Input::Ended(key) => Some(*key),
                _ => None,
            };
            let effects = machine.step(input);
            assert!(finished == 0 || effects.is_empty(), "something after the end: {effects:?}");
            if let Some(key) = ended
                && !effects.iter().any(|e| matches!(e, Effect::Report(_)))
                && recorded.contains(&key)
                && finished == 0
            {
                settled.push(key);
            }
            for effect in effects {
                match effect {
                    Effect::Record(key, _) => recorded.push(key),
                    Effect::Run(key) => {
                        assert!(authorised.contains(&key) && !before.contains(&key));
                        running.push(key);
                    }
                    Effect::SettleDeclined(key) | Effect::SettleCancelled(key) => {
                        assert!(!settled.contains(&key), "settled twice");
                        settled.push(key);
                    }
                    Effect::Finish(_) => finished += 1,
                    _ => {}
                }
            }
        }
        machine.step(Input::<&str, &str>::Stop).into_iter().for_each(|effect| {
            if let Effect::SettleCancelled(key) = effect {
                settled.push(key);
            }
        });
        settled.sort();
        assert_eq!(recorded, settled, "a call was left open");
    }
}
