//! The verbs of capabilities: method names that a model would guess, made from paths and operation ids.
//! Invariant: a verb is not a reserved word of the plasm language. Of several operations of one entity with the same verb, the
//! first keeps the plain verb.

use super::{Endpoint, Mapper};
use crate::api::path::{OperationPath, PathStep, is_root_word};
use crate::names;
use crate::spec::{Operation, Verb};

/// Words that are recognised as the verb at the start of an operation's name.
const VERB_WORDS: [&str; 96] = [
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

/// Returns whether a `POST` only reads, judged by the words of its path and its operation id.
pub fn is_read_by_post(op: &Operation<'_>, path: &OperationPath) -> bool {
    let path_words = names::words(path.last_word());
    let path_reads = !path.ends_in_placeholder()
        && (path_words.first().is_some_and(|word| {
            matches!(
                word.as_str(),
                "search" | "query" | "list" | "find" | "lookup" | "filter" | "get" | "describe" | "retrieve"
            )
        }) || path_words.last().is_some_and(|word| word == "search"));
    let id_words = names::words(op.id.rsplit(['/', '.', '_']).next().unwrap_or_default());
    let id_reads = id_words
        .first()
        .is_some_and(|word| matches!(word.as_str(), "search" | "query" | "list" | "find" | "lookup" | "get"));
    path_reads || id_reads
}

impl<'a> Mapper<'_, 'a> {
    /// Returns the verb of a further read of one row: `latest`, `by_tag`, `me`.
    pub(super) fn lookup_verb(&self, endpoint: usize, entity: usize) -> String {
        let Endpoint { path, scope_names, .. } = &self.endpoints[endpoint];
        let entity = &self.entities[entity];
        let entity_name = names::snake_case(&entity.name);
        let verb = match path.steps.last() {
            Some(PathStep::Placeholder(placeholder)) => {
                let name = scope_names.get(*placeholder).map(String::as_str).unwrap_or("key");
                let is_key = entity.key.iter().any(|part| part.name == name);
                let owner = names::singular(&names::snake_case(path.word_before(*placeholder)));
                if is_key || owner != entity_name { format!("of_{owner}") } else { format!("by_{name}") }
            }
            Some(PathStep::Word(word)) => names::snake_case(word),
            None => "read".to_owned(),
        };
        if verb.is_empty() || names::singular(&verb) == entity_name { "read".to_owned() } else { verb }
    }

    /// Returns the verb of a write with the kind action.
    pub(super) fn action_verb(&self, endpoint: usize, entity: usize) -> String {
        let Endpoint { op, path, .. } = &self.endpoints[endpoint];
        let entity_words = names::words(&self.entities[entity].name);
        let path_words = names::words(path.last_word());
        let ends_in_word = !path.ends_in_placeholder();
        let is_verb = |word: &String| VERB_WORDS.contains(&word.as_str());
        if ends_in_word && path_words.first().is_some_and(is_verb) && op.verb != Verb::Delete {
            return verb_of_words(&path_words, &entity_words);
        }
        let id_words = words_from_verb(op.id);
        let is_helpful = !id_words.is_empty()
            && id_words.len() <= 5
            && !id_words[0].starts_with("post")
            && !id_words[0].starts_with("put");
        if is_helpful {
            return verb_of_words(&id_words, &entity_words);
        }
        let verb = match op.verb {
            Verb::Delete => Some("remove"),
            Verb::Put | Verb::Patch => Some("set"),
            // The last word of `POST /tickets/{id}/close` is itself the verb.
            _ if ends_in_word && !path_words.last().is_some_and(|word| names::is_plural(word)) => None,
            _ => Some("add"),
        };
        let nouns = path_words.iter().map(|word| names::singular(word));
        let words: Vec<String> = verb.map(str::to_owned).into_iter().chain(nouns).collect();
        verb_of_words(&words, &entity_words)
    }

    /// Reserves a method name for the verb. If the entity already uses the verb, a path word or a number is appended.
    pub(super) fn free_verb(&mut self, entity: usize, verb: &str, endpoint: usize) -> String {
        let known = &self.entities[entity];
        let mut method = names::method_name(verb);
        if known.methods.contains(&method) {
            let entity_name = names::snake_case(&known.name);
            let path_words = self.endpoints[endpoint].path.words().rev().filter(|word| !is_root_word(word));
            let scopes = path_words
                .map(|word| names::singular(&names::snake_case(word)))
                .filter(|word| *word != entity_name && !verb.contains(word.as_str()));
            let mut longer = scopes.take(2).map(|scope| names::method_name(&format!("{verb}_{scope}")));
            if let Some(free) = longer.find(|longer| !known.methods.contains(longer)) {
                method = free;
            }
        }
        names::reserve_unique(&mut self.entities[entity].methods, method)
    }
}

/// Returns the words of an operation id from the first verb on: `issues/add-labels` has `add`, `labels`.
fn words_from_verb(id: &str) -> Vec<String> {
    let mut words = names::words(id);
    match words.iter().position(|word| VERB_WORDS.contains(&word.as_str())) {
        Some(at) => words.split_off(at),
        None => Vec::new(),
    }
}

/// Joins words to a verb of at most four words. Words of the entity's name and filler words are left out.
fn verb_of_words(words: &[String], entity_words: &[String]) -> String {
    let noise =
        ["a", "an", "the", "for", "by", "id", "of", "in", "to", "from", "with", "api", "v1", "v2", "authenticated"];
    let is_telling = |word: &String| !entity_words.contains(&names::singular(word)) && !noise.contains(&word.as_str());
    let mut out: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        // The first word is the verb itself and is always kept.
        if at == 0 || is_telling(word) {
            out.push(word);
        }
    }
    out.truncate(4);
    if out.is_empty() { "call".to_owned() } else { out.join("_") }
}
