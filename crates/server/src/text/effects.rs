//! The lines after the rows: handles for unread pages, receipts of effects, and runs that go on.
//! Invariant: an effect that may have happened always has a line. Effects that succeeded share one line for each capability.

use exec::{Receipt, ReceiptState, Resolved};
use indexmap::IndexMap;
use session::{DetachedRun, PageHandle, RunResult};

/// Receipts of effects that did not succeed are shown one by one, up to this many.
const MAX_SHOWN_RECEIPTS: usize = 20;

/// The clause about an outcome that is looked for again: the same question has another answer later.
const SETTLES: &str = "it is looked for again: ask again before doing it again";

/// Renders the lines that follow the rows of a run. Empty if there is nothing to add.
pub fn after_rows(run: &RunResult) -> String {
    let mut out: Vec<String> = Vec::new();
    if run.replayed {
        out.push("replayed: nothing ran again; this is what the first run did".to_owned());
    }
    if run.outcome.cancelled {
        out.push("cancelled: it stopped before its next effect".to_owned());
    }
    for PageHandle { label, handle, unapplied_steps } in &run.pages {
        let before = unapplied_steps.as_ref().map(|steps| format!(", before its {steps}")).unwrap_or_default();
        out.push(format!("more of {label}{before}: page({handle})"));
    }
    if !run.outcome.receipts.is_empty() {
        out.push(receipt_lines(&run.outcome.receipts, false));
    }
    out.join("\n")
}

/// Renders the receipts of a run that has no result. Each failed effect says why it failed.
pub fn receipts_without_result(receipts: &[Receipt]) -> String {
    if receipts.is_empty() {
        return "no effect was begun".to_owned();
    }
    format!("{}\neffects that are not listed were not begun", receipt_lines(receipts, true))
}

/// Renders receipts: the effects that are done first, then the others one by one. `with_cause` adds why an effect failed.
fn receipt_lines(receipts: &[Receipt], with_cause: bool) -> String {
    let done = receipts.iter().filter(|receipt| receipt.state == ReceiptState::Done).map(effect_name);
    // Names are listed in the order of their first effects. Equal names need not be adjacent: the outcome of every second one may have been probed.
    let mut counts: IndexMap<String, usize> = IndexMap::new();
    for name in done {
        *counts.entry(name).or_default() += 1;
    }
    let mut out = Vec::new();
    for (name, count) in counts {
        out.push(if count == 1 { format!("done: {name}") } else { format!("done: {name}, {count} times") });
    }
    let others: Vec<&Receipt> = receipts.iter().filter(|receipt| receipt.state != ReceiptState::Done).collect();
    out.extend(others.iter().take(MAX_SHOWN_RECEIPTS).map(|receipt| receipt_line(receipt, with_cause)));
    if others.len() > MAX_SHOWN_RECEIPTS {
        out.push(format!("and {} more that did not go well", others.len() - MAX_SHOWN_RECEIPTS));
    }
    out.join("\n")
}

/// Names an effect: its label in the program, its capability, and how its outcome was found out if not by its own answer.
fn effect_name(receipt: &Receipt) -> String {
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

/// Renders one receipt.
fn receipt_line(receipt: &Receipt, with_cause: bool) -> String {
    let row = receipt.intent.id.row;
    let row = if row == 0 { String::new() } else { format!(" row {}", row + 1) };
    let target = &receipt.intent.request;
    match &receipt.state {
        // The process died after it opened the receipt and before it saw the answer.
        ReceiptState::Open => {
            let advice = if receipt.settles { format!("; {SETTLES}") } else { String::new() };
            format!("unknown: {}{row}: it was begun and nobody saw its end{advice} · {target}", effect_name(receipt))
        }
        ReceiptState::Unknown { why, .. } => {
            let advice = if receipt.settles { SETTLES } else { "look before doing it again" };
            format!("unknown: {}{row}: it may have happened ({why}); {advice} · {target}", effect_name(receipt))
        }
        ReceiptState::Failed { status, why } => {
            let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
            let cause = if with_cause { format!(": {why}") } else { String::new() };
            format!("failed{status}: {}{row}{cause}", effect_name(receipt))
        }
        ReceiptState::Done => format!("done: {}{row}", effect_name(receipt)),
    }
}

/// Renders a run that goes on: the line to wait for it, its owner, and its progress.
pub fn running(operation: &DetachedRun) -> String {
    let progress = operation.progress;
    let stopping = if operation.stopping { " · stopping before the next effect" } else { "" };
    let effects =
        if progress.effects_done == 0 { String::new() } else { format!(", {} effects done", progress.effects_done) };
    let steps = if progress.steps == 0 {
        String::new()
    } else {
        format!(" · step {} of {}", progress.steps_done, progress.steps)
    };
    let dead_after = DetachedRun::DEAD_AFTER;
    let owner = match operation.silent_seconds {
        None => "it goes on".to_owned(),
        Some(silent) if silent < dead_after => format!(
            "another process has it, last heard of {silent} s ago; after {dead_after} s of silence it goes on in this one"
        ),
        Some(silent) => {
            format!("the process that had it was last heard of {silent} s ago; the line above takes it over")
        }
    };
    format!("wait({})\n{owner}{steps}{effects}{stopping}; send the line above as a program", operation.handle)
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
    fn effects_of_one_name_are_counted_once_although_others_are_between_them() {
        let probed = |row| {
            let resolved = Some(Resolved::Probe { capability: "comment_list".to_owned() });
            Receipt { resolved, ..receipt(row, ReceiptState::Done) }
        };
        let plain = |row| receipt(row, ReceiptState::Done);
        let text = receipt_lines(&[probed(0), plain(1), probed(2), plain(3), probed(4)], false);
        assert_eq!(text, "done: comment_add · found out by comment_list, 3 times\ndone: comment_add, 2 times");
    }

    #[test]
    fn receipts_without_a_result_show_done_failed_unknown_and_missing_effects() {
        let why = "refused".to_owned();
        let failed = ReceiptState::Failed { status: Some(404), why };
        let text = receipts_without_result(&[
            receipt(0, ReceiptState::Done),
            receipt(1, ReceiptState::Done),
            receipt(2, failed),
            receipt(3, ReceiptState::Open),
        ]);
        let expected = "done: comment_add, 2 times\n\
                        failed (404): comment_add row 3: refused\n\
                        unknown: comment_add row 4: it was begun and nobody saw its end · POST http://demo.localhost/api\n\
                        effects that are not listed were not begun";
        assert_eq!(text, expected);
        assert_eq!(receipts_without_result(&[]), "no effect was begun");
    }

    #[test]
    fn a_running_operation_shows_the_line_that_waits_for_it() {
        let progress = RunProgress { steps_done: 1, steps: 3, effects_done: 2 };
        let operation = DetachedRun {
            slot: Slot(0),
            handle: "s0_o1".to_owned(),
            task: String::new(),
            progress,
            stopping: true,
            silent_seconds: None,
        };
        let expected = "wait(s0_o1)\nit goes on · step 1 of 3, 2 effects done · stopping before the next effect; send the line \
                        above as a program";
        assert_eq!(running(&operation), expected);
    }

    #[test]
    fn a_run_of_another_process_shows_its_last_heartbeat() {
        let progress = RunProgress { steps_done: 1, steps: 3, effects_done: 0 };
        let text = |silent| {
            let handle = "s0_o1".to_owned();
            running(&DetachedRun {
                slot: Slot(0),
                handle,
                task: String::new(),
                progress,
                stopping: false,
                silent_seconds: Some(silent),
            })
        };
        let lives = "wait(s0_o1)\nanother process has it, last heard of 4 s ago; after 20 s of silence it goes on in \
                     this one · step 1 of 3; send the line above as a program";
        assert_eq!(text(4), lives);
        let dead = "wait(s0_o1)\nthe process that had it was last heard of 31 s ago; the line above takes it over · step 1 of \
                    3; send the line above as a program";
        assert_eq!(text(31), dead);
    }
}
