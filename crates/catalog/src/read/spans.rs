//! The positions of keys and values in the YAML text. Diagnostics use these positions.
//! Invariants: a path is built without allocations. Only after a mistake is the text parsed again, as a tree of
//! spans. If a path does not exist in the text, its span is the span of the last part of the path that exists.

use std::fmt;

use base::Span;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A path from the top of the file through keys and list items, such as `capabilities`, `ticket_list`, `paging`. The
/// path is a linked list on the call stack, so that checking a valid catalog allocates no paths.
#[derive(Debug, Clone, Copy)]
pub struct YamlPath<'p> {
    /// The path without its last step, or `None` at the top of the file.
    parent: Option<&'p YamlPath<'p>>,
    step: YamlStep<'p>,
}

#[derive(Debug, Clone, Copy)]
enum YamlStep<'p> {
    Top,
    Key(&'p str),
    Item(usize),
}

/// A path that owns its steps. The step to an item of a list is the item's number as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct YamlPathBuf(Vec<String>);

/// The part of the text that a diagnostic points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum YamlTarget {
    /// The key at the end of the path, or the item if the path ends in a list.
    Key(YamlPathBuf),
    /// The value at the end of the path. If the text has no such value, the target is the last key of the path that
    /// exists.
    Value(YamlPathBuf),
    /// The first occurrence of a word below the path. If the word does not occur there, the target is the last key of
    /// the path that exists.
    Word(YamlPathBuf, String),
}

impl<'p> YamlPath<'p> {
    /// The top of the file.
    pub const TOP: YamlPath<'static> = YamlPath { parent: None, step: YamlStep::Top };

    /// Returns this path with one more step to the key `name`.
    pub fn key<'q>(&'q self, name: &'q str) -> YamlPath<'q> {
        YamlPath { parent: Some(self), step: YamlStep::Key(name) }
    }

    /// Returns this path with one more step to an item of a list.
    pub fn item(&self, index: usize) -> YamlPath<'_> {
        YamlPath { parent: Some(self), step: YamlStep::Item(index) }
    }

    /// Returns the target for a mistake in the key at this path.
    pub fn on_key(&self) -> YamlTarget {
        YamlTarget::Key(self.to_path_buf())
    }

    /// Returns the target for a mistake in the value at this path.
    pub fn on_value(&self) -> YamlTarget {
        YamlTarget::Value(self.to_path_buf())
    }

    /// Returns the target for a mistake in one word of the value at this path.
    pub fn on_word(&self, word: impl Into<String>) -> YamlTarget {
        YamlTarget::Word(self.to_path_buf(), word.into())
    }

    fn to_path_buf(self) -> YamlPathBuf {
        let mut steps = Vec::new();
        let mut current = Some(&self);
        while let Some(path) = current {
            match path.step {
                YamlStep::Top => {}
                YamlStep::Key(name) => steps.push(name.to_owned()),
                YamlStep::Item(index) => steps.push(index.to_string()),
            }
            current = path.parent;
        }
        steps.reverse();
        YamlPathBuf(steps)
    }
}

impl YamlPathBuf {
    pub fn new(steps: Vec<String>) -> Self {
        Self(steps)
    }

    /// Removes the last step of the path if this step is the key `key`.
    pub fn pop_key(&mut self, key: &str) {
        if self.0.last().is_some_and(|last| last == key) {
            self.0.pop();
        }
    }

    pub fn steps(&self) -> &[String] {
        &self.0
    }
}

/// The YAML text as a tree of spans: the positions of all keys and values.
#[derive(Debug)]
pub struct SpanTree {
    /// `None` if the text is not YAML.
    top: Option<SpanNode>,
}

#[derive(Debug)]
struct SpanNode {
    span: Span,
    kind: SpanNodeKind,
}

#[derive(Debug)]
enum SpanNodeKind {
    Scalar,
    /// The entries of a map: the key, the key's span, and the value.
    Map(Vec<(String, Span, SpanNode)>),
    List(Vec<SpanNode>),
}

/// The result of following a path in the tree.
struct PathEnd<'t> {
    /// The span of the last key that exists. For an item of a list and for the top of the file it is the span of the
    /// value.
    key: Span,
    node: &'t SpanNode,
    /// Whether every step of the path exists.
    complete: bool,
}

impl SpanTree {
    /// Parses the text. The tree of a text that is not YAML is empty.
    pub fn new(text: &str) -> Self {
        Self { top: serde_saphyr::from_str_with_options(text, super::yaml_options()).ok() }
    }

    /// Returns the span of a target. If the tree is empty, returns the empty span at the beginning of the text.
    pub fn span(&self, text: &str, target: &YamlTarget) -> Span {
        let (YamlTarget::Key(path) | YamlTarget::Value(path) | YamlTarget::Word(path, _)) = target;
        let Some(end) = self.follow(path) else { return Span::default() };
        match target {
            YamlTarget::Value(_) if end.complete => end.node.span,
            YamlTarget::Word(_, word) if end.complete => {
                end.node.scalars().into_iter().find_map(|scalar| find_word_span(text, scalar, word)).unwrap_or(end.key)
            }
            YamlTarget::Key(_) | YamlTarget::Value(_) | YamlTarget::Word(..) => end.key,
        }
    }

    fn follow(&self, path: &YamlPathBuf) -> Option<PathEnd<'_>> {
        let top = self.top.as_ref()?;
        let mut end = PathEnd { key: top.span, node: top, complete: true };
        for step in &path.0 {
            let next = match &end.node.kind {
                SpanNodeKind::Map(pairs) => {
                    pairs.iter().find(|(key, ..)| key == step).map(|(_, key, value)| (*key, value))
                }
                SpanNodeKind::List(items) => {
                    step.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item.span, item))
                }
                // `title: string` is the short form of `title: {type: string}`, so the span of the scalar is used for
                // the missing key `type`.
                SpanNodeKind::Scalar => return Some(end),
            };
            let Some((key, node)) = next else { return Some(PathEnd { complete: false, ..end }) };
            end = PathEnd { key, node, complete: true };
        }
        Some(end)
    }
}

impl SpanNode {
    /// Returns the spans of all scalars inside this value, in the order of the text.
    fn scalars(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            match &node.kind {
                SpanNodeKind::Scalar => spans.push(node.span),
                SpanNodeKind::Map(pairs) => pending.extend(pairs.iter().rev().map(|(.., value)| value)),
                SpanNodeKind::List(items) => pending.extend(items.iter().rev()),
            }
        }
        spans
    }
}

fn find_word_span(text: &str, scalar: Span, word: &str) -> Option<Span> {
    let start = scalar.of(text).find(word)? + scalar.start as usize;
    Some(Span::new(start, start + word.len()))
}

impl<'de> Deserialize<'de> for SpanNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<SpanNodeKind>::deserialize(deserializer)?;
        Ok(SpanNode { span: super::span_of(spanned.referenced), kind: spanned.value })
    }
}

impl<'de> Deserialize<'de> for SpanNodeKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanNodeVisitor)
    }
}

struct SpanNodeVisitor;

impl<'de> Visitor<'de> for SpanNodeVisitor {
    type Value = SpanNodeKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<SpanNodeKind, E> {
        Ok(SpanNodeKind::Scalar)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<SpanNodeKind, E> {
        Ok(SpanNodeKind::Scalar)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<SpanNodeKind, E> {
        Ok(SpanNodeKind::Scalar)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<SpanNodeKind, E> {
        Ok(SpanNodeKind::Scalar)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<SpanNodeKind, E> {
        Ok(SpanNodeKind::Scalar)
    }

    fn visit_unit<E: Error>(self) -> Result<SpanNodeKind, E> {
        Ok(SpanNodeKind::Scalar)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SpanNodeKind, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            pairs.push((key.value, super::span_of(key.referenced), map.next_value()?));
        }
        Ok(SpanNodeKind::Map(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SpanNodeKind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(SpanNodeKind::List(items))
    }
}
