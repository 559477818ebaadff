//! What follows the rows: handles for what was not read, receipts of what was done, and runs that go on.
//! Invariant: an effect that may have happened is always said; many that went well are one line.

use exec::{Receipt, ReceiptState};
use session::{More, Operation, Ran};

/// Receipts of effects that did not simply go well are shown one by one, up to this many.
const SHOWN: usize = 20;

/// One line each, where there is something to say.
pub fn after_rows(ran: &Ran) -> String {
    let mut out: Vec<String> = Vec::new();
    if ran.replayed {
        out.push("replayed: nothing ran again; this is what the first run did".to_owned());
    }
    if ran.outcome.cancelled {
        out.push("cancelled: it stopped before its next effect".to_owned());
    }
    for More { label, handle, before } in &ran.pages {
        let before = before.as_ref().map(|steps| format!(", before its {steps}")).unwrap_or_default();
        out.push(format!("more of {label}{before}: page({handle})"));
    }
    if !ran.outcome.receipts.is_empty() {
        out.push(lines(&ran.outcome.receipts));
    }
    out.join("\n")
}

pub fn lines(receipts: &[Receipt]) -> String {
    if receipts.is_empty() {
        return "no effect was begun".to_owned();
    }
    let done: Vec<&Receipt> = receipts.iter().filter(|r| r.state == ReceiptState::Done).collect();
    let mut out = Vec::new();
    let mut names: Vec<String> = done.iter().map(|r| name(r)).collect();
    names.dedup();
    for name in names {
        let count = done.iter().filter(|r| self::name(r) == name).count();
        out.push(if count == 1 { format!("done: {name}") } else { format!("done: {name}, {count} times") });
    }
    let others: Vec<&Receipt> = receipts.iter().filter(|r| r.state != ReceiptState::Done).collect();
    out.extend(others.iter().take(SHOWN).map(|r| other(r)));
    if others.len() > SHOWN {
        out.push(format!("and {} more that did not go well", others.len() - SHOWN));
    }
    out.join("\n")
}

/// What the program called it and what it is.
fn name(receipt: &Receipt) -> String {
    let intent = &receipt.intent;
    match &intent.label {
        Some(label) => format!("{label} ({})", intent.capability),
        None => intent.capability.clone(),
    }
}

fn other(receipt: &Receipt) -> String {
    let row = receipt.intent.id.row;
    let row = if row == 0 { String::new() } else { format!(" row {}", row + 1) };
    let target = &receipt.intent.request;
    match &receipt.state {
        // A receipt that nobody closed: the process died in between.
        ReceiptState::Open => {
            format!("unknown: {}{row}: it was begun and nobody saw its end · {target}", name(receipt))
        }
        ReceiptState::Unknown { .. } => format!("{}: {}{row} · {target}", receipt.state, name(receipt)),
        ReceiptState::Failed { status, why } => {
            let status = status.map(|s| format!(" ({s})")).unwrap_or_default();
            format!("failed{status}: {}{row}: {why}", name(receipt))
        }
        ReceiptState::Done => format!("done: {}{row}", name(receipt)),
    }
}

/// A run that goes on: the line to ask for it, and how far it is.
pub fn running(operation: &Operation) -> String {
    let told = operation.told;
    let stopping = if operation.stopping { " · stopping before the next effect" } else { "" };
    let effects = if told.effects_done == 0 { String::new() } else { format!(", {} effects done", told.effects_done) };
    let far = if told.steps == 0 { String::new() } else { format!(" · step {} of {}", told.steps_done, told.steps) };
    format!("wait({})\nit goes on{far}{effects}{stopping}", operation.handle)
}
