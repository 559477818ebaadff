//! `tokamak session log|fork|promote|rewind`: the way of a session's heap.
//! Invariant: both pictures draw the same entries and edges; code is text in them, never markup.

use std::path::Path;

use ::session::{ForkRequest, Lineage, LineageNode, Service};
use access::Caller;
use serde_json::json;

use crate::args::Picture;
use crate::commands::catalog::drawn;
use crate::failure::Failure;
use crate::output::Output;

/// Characters of an entry's code in a picture.
const SHOWN: usize = 32;

/// The log of a session of any kind, or its picture.
pub async fn log(
    service: &Service,
    session: &str,
    (graph, path): (Option<Picture>, Option<&Path>),
    output: &Output,
) -> Result<(), Failure> {
    let caller = Caller::local();
    let meant = service.session_target(&caller, session).await?;
    let lineage = service.session_lineage(&caller, &meant).await?;
    match graph {
        Some(form) => picture(&lineage, form, path, output)?,
        None => show(&lineage, output),
    }
    Ok(())
}

pub async fn fork(
    service: &Service,
    (session, intent, at): (&str, &str, Option<u64>),
    output: &Output,
) -> Result<(), Failure> {
    let id = service.session_id(&Caller::local(), session).await?;
    let asked = ForkRequest { session: id.to_string(), intent: intent.to_owned(), at };
    let forked = service.fork_session(&Caller::local(), &asked).await?;
    if output.json {
        output.value(&server::view::json(&server::view::ForkView::new(&forked)));
    } else {
        output.line(&forked.session.to_string());
    }
    Ok(())
}

pub async fn promote(service: &Service, session: &str, output: &Output) -> Result<(), Failure> {
    let id = service.session_id(&Caller::local(), session).await?;
    service.promote_session(&Caller::local(), &id.to_string()).await?;
    if output.json {
        output.value(&json!({"ok": true}))
    } else {
        output.line("it may write now")
    }
    Ok(())
}

pub async fn rewind(service: &Service, session: &str, index: u64, output: &Output) -> Result<(), Failure> {
    let id = service.session_id(&Caller::local(), session).await?;
    let entry = service.rewind_session(&Caller::local(), &id.to_string(), index).await?;
    if output.json {
        output.value(&json!({"entry": server::view::LogEntryView::whole(&entry)}));
    } else {
        output.line(&format!("entry {}: back at the heap of entry {index}, {}", entry.index, entry.output_heap));
    }
    Ok(())
}

fn show(lineage: &Lineage, output: &Output) {
    if output.json {
        let entries: Vec<_> = lineage.nodes.iter().map(|node| server::view::LogEntryView::whole(&node.entry)).collect();
        let forked = lineage.forked.as_ref().map(|(session, entries)| json!({"session": session, "entries": entries}));
        output.value(&json!({"session": lineage.session, "head": lineage.head, "forked": forked, "entries": entries}));
        return;
    }
    if let Some((from, entries)) = &lineage.forked {
        output.line(&format!("forked from {from} after {entries} entries"));
    }
    for node in &lineage.nodes {
        let entry = &node.entry;
        output.line(&format!("{:4} {} {} {}", entry.index, entry.timestamp, heap(node), code(node)));
    }
}

fn picture(lineage: &Lineage, form: Picture, path: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let text = match form {
        Picture::Mermaid => mermaid(lineage),
        Picture::Svg => svg(lineage).ok_or(Failure::Undrawable)?,
    };
    match path {
        Some(path) => {
            std::fs::write(path, &text).map_err(|cause| Failure::Unwritable { path: path.to_owned(), cause })?;
        }
        None => output.line(text.trim_end()),
    }
    Ok(())
}

/// The heap that an entry left, and whether it is still there.
fn heap(node: &LineageNode) -> String {
    format!("{}{}", node.entry.output_heap.short(), if node.entry.gone { " (gone)" } else { "" })
}

/// The first words of what ran, in one line.
fn code(node: &LineageNode) -> String {
    match node.entry.rewound_to {
        Some(index) => format!("(rewound to {index})"),
        None => node.entry.code.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect(),
    }
}

/// From each entry to the one that stood on its heap. Those that stood on nothing begin at the fork, where there is one.
fn edges(lineage: &Lineage) -> Vec<(usize, usize)> {
    let after = |(at, node): (usize, &LineageNode)| {
        let from = lineage.nodes.iter().position(|other| Some(other.entry.index) == node.previous)?;
        Some((from, at))
    };
    lineage.nodes.iter().enumerate().filter_map(after).collect()
}

fn mermaid(lineage: &Lineage) -> String {
    let mut lines = vec!["flowchart LR".to_owned()];
    for (at, node) in lineage.nodes.iter().enumerate() {
        let class = match Some(node.entry.output_heap) == lineage.head {
            true => ":::head",
            false if node.entry.gone => ":::gone",
            false => "",
        };
        let text = format!("{} {} {}", node.entry.index, heap(node), code(node));
        lines.push(format!("    n{at}[\"{}\"]{class}", quoted(&text)));
    }
    for (from, to) in edges(lineage) {
        lines.push(format!("    n{from} --> n{to}"));
    }
    if let (Some((session, entries)), false) = (&lineage.forked, lineage.nodes.is_empty()) {
        lines.push(format!("    fork[\"{}\"] -.-> n0", quoted(&format!("{session} after {entries} entries"))));
    }
    lines.push("    classDef head stroke-width:3px".to_owned());
    lines.push("    classDef gone stroke-dasharray:3".to_owned());
    lines.join("\n") + "\n"
}

/// Nothing in a label may end it.
fn quoted(text: &str) -> String {
    text.chars()
        .map(|c| {
            if matches!(c, '"' | '<' | '>' | '&' | '#' | '`' | '\\') {
                format!("#{};", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

fn svg(lineage: &Lineage) -> Option<String> {
    let label = |node: &LineageNode| format!("{} {}\n{}", node.entry.index, heap(node), code(node));
    let mut labels: Vec<String> = lineage.nodes.iter().map(label).collect();
    let mut edges: Vec<(usize, usize, String)> =
        edges(lineage).into_iter().map(|(from, to)| (from, to, String::new())).collect();
    if let (Some((session, entries)), false) = (&lineage.forked, labels.is_empty()) {
        edges.push((labels.len(), 0, "fork".to_owned()));
        labels.push(format!("{session}\nafter {entries} entries"));
    }
    drawn(labels, edges)
}

#[cfg(test)]
mod tests {
    use ::session::LogEntry;
    use base::{Digest, Timestamp};

    use super::*;

    fn node(index: u64, gone: bool) -> LineageNode {
        let (input_heap, output_heap) = (None, Digest::of(&index.to_be_bytes()));
        let (code, timestamp) = (format!("step{index}()"), Timestamp(0));
        let entry = LogEntry { index, input_heap, output_heap, code, timestamp, rewound_to: None, gone };
        LineageNode { entry, previous: index.checked_sub(1) }
    }

    #[test]
    fn an_entry_whose_heap_has_gone_says_so_in_every_form() {
        let nodes = vec![node(0, true), node(1, false)];
        let head = Some(nodes[1].entry.output_heap);
        let lineage = Lineage { session: "s".to_owned(), nodes, head, forked: None };
        assert_eq!(heap(&lineage.nodes[0]), format!("{} (gone)", lineage.nodes[0].entry.output_heap.short()));
        let drawn = mermaid(&lineage);
        assert_eq!((drawn.matches("(gone)").count(), drawn.matches("]:::gone").count()), (1, 1), "{drawn}");
        assert!(drawn.contains("]:::head"), "{drawn}");
        assert_eq!(svg(&lineage).unwrap().matches("(gone)").count(), 1);
    }
}
