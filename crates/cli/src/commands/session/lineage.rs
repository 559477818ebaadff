//! `tokamak session log`, `fork`, `promote` and `rewind`: prints and draws the log of a session's heaps, and changes its head.
//! Invariant: Mermaid and SVG draw the same log entries and edges. Code is escaped in both.

use std::io::Write;
use std::path::Path;

use app::calls::{ForkSession, PromoteSession, RewindSession, ShowLineage};
use app::{App, Context};
use serde_json::json;
use server::view;
use session::{Lineage, LineageNode};

use super::session_id;
use crate::args::GraphForm;
use crate::commands::catalog::draw_boxes;
use crate::failure::Failure;
use crate::output::Output;

/// The largest number of characters of a log entry's code that is shown.
const SHOWN_CODE_CHARS: usize = 32;

/// Prints the log of a logical or a named session, or draws it.
pub async fn log(
    app: &App,
    session: &str,
    graph: Option<GraphForm>,
    path: Option<&Path>,
    output: &Output,
) -> Result<(), Failure> {
    let request = ShowLineage { session: session.to_owned() };
    let lineage = app.call(&Context::command("show_lineage"), request).await?;
    match graph {
        Some(form) => draw(&lineage, form, path, output),
        None => {
            print_log(&lineage, output);
            Ok(())
        }
    }
}

pub async fn fork(app: &App, session: &str, intent: &str, at: Option<u64>, output: &Output) -> Result<(), Failure> {
    let logical_session_ref = session_id(app, session).await?;
    let request = ForkSession { logical_session_ref, intent: intent.to_owned(), at };
    let forked = app.call(&Context::command("fork_session"), request).await?;
    output.value_or_line(&view::json(&view::ForkView::new(&forked)), &forked.session.to_string());
    Ok(())
}

pub async fn promote(app: &App, session: &str, output: &Output) -> Result<(), Failure> {
    let logical_session_ref = session_id(app, session).await?;
    app.call(&Context::command("promote_session"), PromoteSession { logical_session_ref }).await?;
    output.value_or_line(&json!({"ok": true}), "the fork is promoted: the session may make writes");
    Ok(())
}

pub async fn rewind(app: &App, session: &str, index: u64, output: &Output) -> Result<(), Failure> {
    let logical_session_ref = session_id(app, session).await?;
    let request = RewindSession { logical_session_ref, index };
    let entry = app.call(&Context::command("rewind_session"), request).await?;
    let text = format!(
        "the next script of the session starts from the heap of entry {index}, {}; the log has this as entry {}",
        entry.output_heap, entry.index
    );
    output.value_or_line(&json!({"entry": view::LogEntryView::whole(&entry)}), &text);
    Ok(())
}

fn print_log(lineage: &Lineage, output: &Output) {
    if output.json {
        let entries: Vec<_> = lineage.nodes.iter().map(|node| view::LogEntryView::whole(&node.entry)).collect();
        let forked = lineage.forked.as_ref().map(|(session, entries)| json!({"session": session, "entries": entries}));
        output.value(&json!({"session": lineage.session, "head": lineage.head, "forked": forked, "entries": entries}));
        return;
    }
    if let Some((from, entries)) = &lineage.forked {
        output.line(&format!("the session is a fork of {from}, made after {entries} log entries"));
    }
    for node in &lineage.nodes {
        let entry = &node.entry;
        output.line(&format!("{:4} {} {} {}", entry.index, entry.timestamp, heap_text(node), code_text(node)));
    }
}

/// Draws the log as a graph, and writes the graph to a file or to standard output.
fn draw(lineage: &Lineage, form: GraphForm, path: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let text = match form {
        GraphForm::Mermaid => mermaid(lineage),
        GraphForm::Svg => svg(lineage).ok_or(Failure::Undrawable)?,
    };
    match path {
        Some(path) => {
            // The log has code and names of a session, so a new file is for this user only.
            let written = store::folder::private_file().create(true).truncate(true).open(path);
            written
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|cause| Failure::Unwritable { path: path.to_owned(), cause })?;
        }
        None => output.line(text.trim_end()),
    }
    Ok(())
}

/// Returns the short key of the heap after a log entry, with the mark `(gone)` if the heap was removed.
fn heap_text(node: &LineageNode) -> String {
    format!("{}{}", node.entry.output_heap.short(), if node.entry.gone { " (gone)" } else { "" })
}

/// Returns the first characters of the entry's code in one line. An entry of `session rewind` has no code, but the index of its target.
fn code_text(node: &LineageNode) -> String {
    match node.entry.rewound_to {
        Some(index) => format!("(rewound to {index})"),
        None => {
            node.entry.code.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN_CODE_CHARS).collect()
        }
    }
}

/// Returns the edges of the graph as pairs of positions in `nodes`: from the entry that made a heap to the entry that ran on this heap.
fn edges(lineage: &Lineage) -> Vec<(usize, usize)> {
    let edge_to = |(to, node): (usize, &LineageNode)| {
        let from = lineage.nodes.iter().position(|other| Some(other.entry.index) == node.previous)?;
        Some((from, to))
    };
    lineage.nodes.iter().enumerate().filter_map(edge_to).collect()
}

fn mermaid(lineage: &Lineage) -> String {
    let mut lines = vec!["flowchart LR".to_owned()];
    for (at, node) in lineage.nodes.iter().enumerate() {
        let class = match Some(node.entry.output_heap) == lineage.head {
            true => ":::head",
            false if node.entry.gone => ":::gone",
            false => "",
        };
        let text = format!("{} {} {}", node.entry.index, heap_text(node), code_text(node));
        lines.push(format!("    n{at}[\"{}\"]{class}", escape_label(&text)));
    }
    for (from, to) in edges(lineage) {
        lines.push(format!("    n{from} --> n{to}"));
    }
    if let (Some((session, entries)), false) = (&lineage.forked, lineage.nodes.is_empty()) {
        lines.push(format!("    fork[\"{}\"] -.-> n0", escape_label(&format!("{session} after {entries} entries"))));
    }
    lines.push("    classDef head stroke-width:3px".to_owned());
    lines.push("    classDef gone stroke-dasharray:3".to_owned());
    lines.join("\n") + "\n"
}

/// Escapes every character that could end a Mermaid label.
fn escape_label(text: &str) -> String {
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
    let label = |node: &LineageNode| format!("{} {}\n{}", node.entry.index, heap_text(node), code_text(node));
    let mut labels: Vec<String> = lineage.nodes.iter().map(label).collect();
    let mut edges: Vec<(usize, usize, String)> =
        edges(lineage).into_iter().map(|(from, to)| (from, to, String::new())).collect();
    if let (Some((session, entries)), false) = (&lineage.forked, labels.is_empty()) {
        edges.push((labels.len(), 0, "fork".to_owned()));
        labels.push(format!("{session}\nafter {entries} entries"));
    }
    draw_boxes(labels, edges)
}

#[cfg(test)]
mod tests {
    use base::{Digest, Timestamp};
    use session::LogEntry;

    use super::*;

    fn node(index: u64, gone: bool) -> LineageNode {
        let (input_heap, output_heap) = (None, Digest::of(&index.to_be_bytes()));
        let (code, timestamp) = (format!("step{index}()"), Timestamp(0));
        let entry = LogEntry { index, input_heap, output_heap, code, timestamp, rewound_to: None, gone };
        LineageNode { entry, previous: index.checked_sub(1) }
    }

    #[test]
    fn an_entry_whose_heap_was_removed_says_so_in_every_form() {
        let nodes = vec![node(0, true), node(1, false)];
        let head = Some(nodes[1].entry.output_heap);
        let lineage = Lineage { session: "s".to_owned(), nodes, head, forked: None };
        assert_eq!(heap_text(&lineage.nodes[0]), format!("{} (gone)", lineage.nodes[0].entry.output_heap.short()));
        let drawn = mermaid(&lineage);
        assert_eq!((drawn.matches("(gone)").count(), drawn.matches("]:::gone").count()), (1, 1), "{drawn}");
        assert!(drawn.contains("]:::head"), "{drawn}");
        assert_eq!(svg(&lineage).unwrap().matches("(gone)").count(), 1);
    }
}
