//! Where things stand in the text: a way down through its keys, and the place that it leads to.
//! Invariant: ways cost nothing until there is a mistake; only then is the text read again, as a tree with places. A way that
//! leads nowhere has the place of the last thing on it that exists.

use std::fmt;

use base::Span;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A way down from the top of the file: `capabilities`, `ticket_list`, `paging`. Lives on the stack of whoever walks it.
#[derive(Debug, Clone, Copy)]
pub struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Top,
    Key(&'p str),
    Item(usize),
}

/// A way that outlives the walk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Way(Vec<String>);

impl<'p> At<'p> {
    pub const TOP: At<'static> = At { parent: None, step: Step::Top };

    pub fn key<'q>(&'q self, name: &'q str) -> At<'q> {
        At { parent: Some(self), step: Step::Key(name) }
    }

    pub fn item(&self, index: usize) -> At<'_> {
        At { parent: Some(self), step: Step::Item(index) }
    }

    pub fn way(&self) -> Way {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(here) = at {
            match here.step {
                Step::Top => {}
                Step::Key(name) => steps.push(name.to_owned()),
                Step::Item(index) => steps.push(index.to_string()),
            }
            at = here.parent;
        }
        steps.reverse();
        Way(steps)
    }

    pub fn here(&self) -> Spot {
        Spot::Key(self.way())
    }

    pub fn value(&self) -> Spot {
        Spot::Value(self.way())
    }

    pub fn word(&self, word: impl Into<String>) -> Spot {
        Spot::Word(self.way(), word.into())
    }
}

impl Way {
    pub fn new(steps: Vec<String>) -> Self {
        Self(steps)
    }

    /// Goes up again, if this key is the last step.
    pub fn leave(&mut self, key: &str) {
        if self.0.last().is_some_and(|last| last == key) {
            self.0.pop();
        }
    }

    pub fn steps(&self) -> &[String] {
        &self.0
    }
}

/// What a mistake points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// The key that the way ends at, or its value where it ends in a list.
    Key(Way),
    /// The value that the way ends at; its key, where there is no such value.
    Value(Way),
    /// The first time that a word is written below the way; its key, where that is nowhere.
    Word(Way, String),
}

/// The text as a tree.
#[derive(Debug)]
pub struct Places {
    top: Option<Node>,
}

#[derive(Debug)]
struct Node {
    place: Span,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Scalar,
    Map(Vec<(String, Span, Node)>),
    List(Vec<Node>),
}

impl Places {
    /// A text that is not YAML has no places.
    pub fn of(text: &str) -> Self {
        Self { top: serde_saphyr::from_str_with_options(text, super::options()).ok() }
    }

    pub fn place(&self, text: &str, spot: &Spot) -> Span {
        let found = |way: &Way| self.walk(way);
        match spot {
            Spot::Key(way) => found(way).map(|f| f.key),
            Spot::Value(way) => found(way).map(|f| if f.whole { f.node.place } else { f.key }),
            Spot::Word(way, word) => found(way).map(|f| {
                let inside = f.node.scalars().into_iter().find_map(|scalar| word_in(text, scalar, word));
                inside.filter(|_| f.whole).unwrap_or(f.key)
            }),
        }
        .unwrap_or_default()
    }

    fn walk(&self, way: &Way) -> Option<Found<'_>> {
        let mut node = self.top.as_ref()?;
        let mut found = Found { key: node.place, node, whole: true };
        for step in &way.0 {
            let next = match &node.kind {
                NodeKind::Map(pairs) => pairs.iter().find(|(key, ..)| key == step).map(|(_, key, node)| (*key, node)),
                NodeKind::List(items) => {
                    step.parse().ok().and_then(|at: usize| items.get(at)).map(|node| (node.place, node))
                }
                // `title: string` says what `title: {type: string}` says: nothing is below it, and it is what is meant.
                NodeKind::Scalar => return Some(found),
            };
            let Some((key, inner)) = next else { return Some(Found { whole: false, ..found }) };
            found = Found { key, node: inner, whole: true };
            node = inner;
        }
        Some(found)
    }
}

struct Found<'t> {
    key: Span,
    node: &'t Node,
    /// Whether the way led to its end.
    whole: bool,
}

impl Node {
    /// The places of everything written in it, in order.
    fn scalars(&self) -> Vec<Span> {
        let mut found = Vec::new();
        let mut work = vec![self];
        while let Some(node) = work.pop() {
            match &node.kind {
                NodeKind::Scalar => found.push(node.place),
                NodeKind::Map(pairs) => work.extend(pairs.iter().rev().map(|(.., node)| node)),
                NodeKind::List(items) => work.extend(items.iter().rev()),
            }
        }
        found
    }
}

fn word_in(text: &str, scalar: Span, word: &str) -> Option<Span> {
    let at = scalar.of(text).find(word)? + scalar.start as usize;
    Some(Span::new(at, at + word.len()))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<NodeKind>::deserialize(deserializer)?;
        Ok(Node { place: super::place_of(spanned.referenced), kind: spanned.value })
    }
}

impl<'de> Deserialize<'de> for NodeKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Kinds)
    }
}

struct Kinds;

impl<'de> Visitor<'de> for Kinds {
    type Value = NodeKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<NodeKind, E> {
        Ok(NodeKind::Scalar)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<NodeKind, E> {
        Ok(NodeKind::Scalar)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<NodeKind, E> {
        Ok(NodeKind::Scalar)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<NodeKind, E> {
        Ok(NodeKind::Scalar)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<NodeKind, E> {
        Ok(NodeKind::Scalar)
    }

    fn visit_unit<E: Error>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Scalar)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NodeKind, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            pairs.push((key.value, super::place_of(key.referenced), map.next_value()?));
        }
        Ok(NodeKind::Map(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NodeKind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(NodeKind::List(items))
    }
}
