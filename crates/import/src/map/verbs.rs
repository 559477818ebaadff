//! What capabilities are called: verbs that a model would guess, out of paths and operation ids.
//! Invariant: a verb is a name that the language leaves free; which of several on one entity has which is told by the order.

use super::{Mapper, View};
use crate::api::path::{Path, Step, is_root_word};
use crate::names;
use crate::spec::{Operation, Verb};

/// Words that begin what an operation does.
const VERBS: [&str; 96] = [
    "get",
    "list",
    "create",
    "update",
    "delete",
    "remove",
    "add",
    "set",
    "search",
    "find",
    "lookup",
    "query",
    "fetch",
    "read",
    "retrieve",
    "show",
    "describe",
    "post",
    "put",
    "patch",
    "replace",
    "insert",
    "upsert",
    "save",
    "send",
    "cancel",
    "close",
    "open",
    "reopen",
    "merge",
    "lock",
    "unlock",
    "enable",
    "disable",
    "start",
    "stop",
    "restart",
    "pause",
    "resume",
    "run",
    "trigger",
    "approve",
    "reject",
    "accept",
    "decline",
    "invite",
    "join",
    "leave",
    "archive",
    "unarchive",
    "restore",
    "copy",
    "move",
    "rename",
    "convert",
    "transfer",
    "assign",
    "unassign",
    "attach",
    "detach",
    "link",
    "unlink",
    "follow",
    "unfollow",
    "star",
    "unstar",
    "block",
    "unblock",
    "mark",
    "check",
    "test",
    "validate",
    "verify",
    "confirm",
    "reset",
    "refresh",
    "revoke",
    "rotate",
    "generate",
    "download",
    "upload",
    "import",
    "export",
    "sync",
    "publish",
    "unpublish",
    "subscribe",
    "unsubscribe",
    "batch",
    "bulk",
    "capture",
    "refund",
    "void",
    "finalize",
    "pay",
    "clear",
];

/// Whether a `POST` only reads.
pub fn only_asks(op: &Operation<'_>, path: &Path) -> bool {
    let asks = |word: &str| {
        matches!(word, "search" | "query" | "list" | "find" | "lookup" | "filter" | "get" | "describe" | "retrieve")
    };
    let last = names::words(path.last_word());
    let of_path =
        !path.ends_in_hole() && (last.first().is_some_and(|w| asks(w)) || last.last().is_some_and(|w| w == "search"));
    let id = names::words(op.id.rsplit(['/', '.', '_']).next().unwrap_or_default());
    let of_id =
        id.first().is_some_and(|word| matches!(word.as_str(), "search" | "query" | "list" | "find" | "lookup" | "get"));
    of_path || of_id
}

/// The words of an operation's id from its verb on: `issues/add-labels` as `add`, `labels`.
fn id_words(id: &str) -> Vec<String> {
    let mut words = names::words(id);
    let at = words.iter().position(|word| VERBS.contains(&word.as_str()));
    match at {
        Some(at) => words.split_off(at),
        None => Vec::new(),
    }
}

impl<'a> Mapper<'_, 'a> {
    /// For another way to read one: `latest`, `by_tag`, `me`.
    pub(super) fn by_verb(&self, view: usize, ent: usize) -> String {
        let View { path, holes, .. } = &self.views[view];
        let own = names::snake(&self.ents[ent].name);
        let word = match path.steps.last() {
            Some(Step::Hole(hole)) => {
                let name = holes.get(*hole).map(String::as_str).unwrap_or("key");
                let key = self.ents[ent].parts.iter().any(|part| part.name == name);
                let before = names::singular(&names::snake(path.word_before(*hole)));
                if key || before != own { format!("of_{before}") } else { format!("by_{name}") }
            }
            Some(Step::Word(word)) => names::snake(word),
            None => "read".to_owned(),
        };
        if word.is_empty() || names::singular(&word) == own { "read".to_owned() } else { word }
    }

    /// For a write that is no plain create, update or delete.
    pub(super) fn action_verb(&self, view: usize, ent: usize) -> String {
        let View { op, path, .. } = &self.views[view];
        let entity = names::words(&self.ents[ent].name);
        let ours = |word: &String| entity.contains(&names::singular(word));
        let last = names::words(path.last_word());
        let singular: Vec<String> = last.iter().map(|word| names::singular(word)).collect();
        let word_last = !path.ends_in_hole();
        if word_last && last.first().is_some_and(|word| VERBS.contains(&word.as_str())) && op.verb != Verb::Delete {
            return kept(&last, &ours);
        }
        let of_id = id_words(op.id);
        let helps =
            of_id.len() <= 5 && !of_id.is_empty() && !of_id[0].starts_with("post") && !of_id[0].starts_with("put");
        if helps {
            return kept(&of_id, &ours);
        }
        let verb = match op.verb {
            Verb::Delete => "remove",
            Verb::Put | Verb::Patch => "set",
            _ if word_last && !last.last().is_some_and(|word| names::is_plural(word)) => "",
            _ => "add",
        };
        let words: Vec<String> = [verb.to_owned()].into_iter().filter(|v| !v.is_empty()).chain(singular).collect();
        kept(&words, &ours)
    }

    /// The same verb twice on one entity: the scope tells them apart, then a number.
    pub(super) fn free_verb(&mut self, ent: usize, verb: &str, view: usize) -> String {
        let taken = |mapper: &Self, verb: &str| mapper.ents[ent].verbs.contains(verb);
        let mut found = names::method(verb);
        if taken(self, &found) {
            let entity = names::snake(&self.ents[ent].name);
            let words = self.views[view].path.steps.iter().rev().filter_map(|step| match step {
                Step::Word(word) if !is_root_word(word) => Some(names::singular(&names::snake(word))),
                _ => None,
            });
            let says: Vec<String> =
                words.filter(|word| *word != entity && !verb.contains(word.as_str())).take(2).collect();
            for outer in says {
                let longer = names::method(&format!("{verb}_{outer}"));
                if !taken(self, &longer) {
                    found = longer;
                    break;
                }
            }
        }
        names::unique(&mut self.ents[ent].verbs, found)
    }
}

/// Without the entity's own words and what only says how it is found.
fn kept(words: &[String], ours: &dyn Fn(&String) -> bool) -> String {
    let noise =
        ["a", "an", "the", "for", "by", "id", "of", "in", "to", "from", "with", "api", "v1", "v2", "authenticated"];
    let mut out: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at == 0 || (!ours(word) && !noise.contains(&word.as_str())) {
            out.push(word);
        }
    }
    out.truncate(4);
    if out.is_empty() { "call".to_owned() } else { out.join("_") }
}
