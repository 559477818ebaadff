//! What follows the rows: handles for what was not read, receipts of what was done, and runs that go on.
//! Invariant: an effect that may have happened is always said; many that went well are one line.

use exec::{Receipt, ReceiptState, Resolved};
use session::{DetachedRun, PageHandle, RunResult};

/// Receipts of effects that did not simply go well are shown one by one, up to this many.
const SHOWN: usize = 20;

/// One line each, where there is something to say.
pub fn after_rows(ran: &RunResult) -> String {
    let mut out: Vec<String> = Vec::new();
    if ran.replayed {
        out.push("replayed: nothing ran again; this is what the first run did".to_owned());
    }
    if ran.outcome.cancelled {
        out.push("cancelled: it stopped before its next effect".to_owned());
    }
    for PageHandle { label, handle, unapplied_steps: before } in &ran.pages {
        let before = before.as_ref().map(|steps| format!(", before its {steps}")).unwrap_or_default();
        out.push(format!("more of {label}{before}: page({handle})"));
    }
    if !ran.outcome.receipts.is_empty() {
        out.push(lines(&ran.outcome.receipts, false));
    }
    out.join("\n")
}

/// Receipts without a result beside them: each says why it failed.
pub fn alone(receipts: &[Receipt]) -> String {
    if receipts.is_empty() {
        return "no effect was begun".to_owned();
    }
    format!("{}\neffects that are not listed were not begun", lines(receipts, true))
}

fn lines(receipts: &[Receipt], why: bool) -> String {
    let done: Vec<String> = receipts.iter().filter(|r| r.state == ReceiptState::Done).map(name).collect();
    let mut names = done.clone();
    names.dedup();
    let mut out = Vec::new();
    for name in names {
        let count = done.iter().filter(|other| **other == name).count();
        out.push(if count == 1 { format!("done: {name}") } else { format!("done: {name}, {count} times") });
    }
    let others: Vec<&Receipt> = receipts.iter().filter(|r| r.state != ReceiptState::Done).collect();
    out.extend(others.iter().take(SHOWN).map(|r| other(r, why)));
    if others.len() > SHOWN {
        out.push(format!("and {} more that did not go well", others.len() - SHOWN));
    }
    out.join("\n")
}

/// What the program called it, what it is, and how its end was found out where its answer did not tell.
fn name(receipt: &Receipt) -> String {
    let intent = &receipt.intent;
    let name = match &intent.label {
        Some(label) => format!("{label} ({})", intent.capability),
        None => intent.capability.clone(),
    };
    match &receipt.resolved {
        None => name,
        Some(Resolved::Probe { capability }) => format!("{name} · found out by {capability}"),
        Some(Resolved::Repeated) => format!("{name} · sent again under the same key"),
        Some(Resolved::Earlier) => format!("{name} · before the run was resumed"),
    }
}

fn other(receipt: &Receipt, why: bool) -> String {
    let row = receipt.intent.id.row;
    let row = if row == 0 { String::new() } else { format!(" row {}", row + 1) };
    let target = &receipt.intent.request;
    match &receipt.state {
        // A receipt that nobody closed: the process died in between.
        ReceiptState::Open => {
            format!("unknown: {}{row}: it was begun and nobody saw its end · {target}", name(receipt))
        }
        ReceiptState::Unknown { why, .. } => {
            format!(
                "unknown: {}{row}: it may have happened ({why}); look before doing it again · {target}",
                name(receipt)
            )
        }
        ReceiptState::Failed { status, why: cause } => {
            let status = status.map(|s| format!(" ({s})")).unwrap_or_default();
            let cause = if why { format!(": {cause}") } else { String::new() };
            format!("failed{status}: {}{row}{cause}", name(receipt))
        }
        ReceiptState::Done => format!("done: {}{row}", name(receipt)),
    }
}

/// A run that goes on: the line to ask for it, and how far it is.
pub fn running(operation: &DetachedRun) -> String {
    let told = operation.progress;
    let stopping = if operation.stopping { " · stopping before the next effect" } else { "" };
    let effects = if told.effects_done == 0 { String::new() } else { format!(", {} effects done", told.effects_done) };
    let far = if told.steps == 0 { String::new() } else { format!(" · step {} of {}", told.steps_done, told.steps) };
    let after = DetachedRun::DEAD_AFTER;
    let owner = match operation.silent_seconds {
        None => "it goes on".to_owned(),
        Some(silent) if silent < after => format!(
            "another process has it, last heard of {silent} s ago; after {after} s of silence whoever asks takes it over"
        ),
        Some(silent) => {
            format!("the process that had it was last heard of {silent} s ago; the line above takes it over")
        }
    };
    format!("wait({})\n{owner}{far}{effects}{stopping}; send the line above as a program", operation.handle)
}

#[cfg(test)]
mod tests {
    // why: a failed expectation is the test's own failure.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use base::{Digest, RunId, Slot};
    use serde_json::json;
    use session::RunProgress;

    fn receipt(row: usize, state: ReceiptState) -> Receipt {
        let id = json!({"run": RunId::from_random([1; 16]), "step": 0, "row": row});
        let intent = json!({"id": id, "catalog": "demo", "capability": "comment_add", "label": null, "once": null,
            "request": "POST http://demo.localhost/api", "args": Digest::of(b""), "undo": null});
        let receipt = json!({"intent": intent, "state": state, "rows": [], "resolved": null});
        serde_json::from_value(receipt).unwrap()
    }

    #[test]
    fn receipts_alone_say_what_happened_what_may_have_and_what_did_not() {
        let why = "refused".to_owned();
        let failed = ReceiptState::Failed { status: Some(404), why };
        let told = alone(&[
            receipt(0, ReceiptState::Done),
            receipt(1, ReceiptState::Done),
            receipt(2, failed),
            receipt(3, ReceiptState::Open),
        ]);
        let expected = "done: comment_add, 2 times\n\
                        failed (404): comment_add row 3: refused\n\
                        unknown: comment_add row 4: it was begun and nobody saw its end · POST http://demo.localhost/api\n\
                        effects that are not listed were not begun";
        assert_eq!(told, expected);
        assert_eq!(alone(&[]), "no effect was begun");
    }

    #[test]
    fn a_run_that_goes_on_says_how_to_ask_for_it() {
        let told = RunProgress { steps_done: 1, steps: 3, effects_done: 2 };
        let operation = DetachedRun {
            slot: Slot(0),
            handle: "s0_o1".to_owned(),
            task: String::new(),
            progress: told,
            stopping: true,
            silent_seconds: None,
        };
        let expected = "wait(s0_o1)\nit goes on · step 1 of 3, 2 effects done · stopping before the next effect; send the line \
                        above as a program";
        assert_eq!(running(&operation), expected);
    }

    #[test]
    fn a_run_of_another_process_is_told_with_when_that_was_heard_of() {
        let told = RunProgress { steps_done: 1, steps: 3, effects_done: 0 };
        let said = |silent| {
            let handle = "s0_o1".to_owned();
            running(&DetachedRun {
                slot: Slot(0),
                handle,
                task: String::new(),
                progress: told,
                stopping: false,
                silent_seconds: Some(silent),
            })
        };
        let lives = "wait(s0_o1)\nanother process has it, last heard of 4 s ago; after 20 s of silence whoever asks takes it \
                     over · step 1 of 3; send the line above as a program";
        assert_eq!(said(4), lives);
        let dead = "wait(s0_o1)\nthe process that had it was last heard of 31 s ago; the line above takes it over · step 1 of \
                    3; send the line above as a program";
        assert_eq!(said(31), dead);
    }
}
