//! What a row of an entity is made of, found out once for all rows of an answer: which members of an item hold which field.
//! Invariant: where a field's value is moved out of its item, no other path leads there, through there or below.

use serde_json::Value;

use crate::model::{Catalog, Entity, Field, Relation, Row, Source, Via};
use crate::path::{Beyond, DataPath};
use crate::types::Type;

pub(super) struct Shape<'a> {
    pub entity: &'a Entity,
    pub columns: Vec<Column<'a>>,
    /// Every field, without a value: a copy of it is a row whose names need not be hashed again.
    pub blank: Row,
    /// What to read of an item; `None` where a path reads the item itself, so all of it.
    pub members: Option<Members<'a>>,
    pub embedded: Vec<Embedded<'a>>,
}

pub(super) struct Column<'a> {
    pub field: &'a Field,
    pub is_key: bool,
    /// The entity that it refers to and that one's key, where it does.
    pub refers: Option<(&'a str, &'a [String])>,
    /// Where its value is moved from; `None` where it is looked for in what was kept of the item.
    pub own: Option<&'a DataPath>,
}

/// A relation whose rows lie in the item.
pub(super) struct Embedded<'a> {
    pub relation: &'a Relation,
    pub path: &'a DataPath,
    pub shape: Shape<'a>,
}

/// The members of an object that are read; all others are passed over.
#[derive(Default)]
pub(super) struct Members<'a>(pub Vec<(&'a str, Take<'a>)>);

pub(super) enum Take<'a> {
    /// Its value is this field's.
    Field(usize),
    /// Kept whole: several paths lead into it, or one to several places.
    Keep,
    /// An object, and what to read of it.
    Inside(Members<'a>),
}

impl<'a> Shape<'a> {
    pub(super) fn of(catalog: &'a Catalog, entity: &'a Entity) -> Self {
        let embedded = embedded(entity).filter_map(|(relation, path)| {
            let target = catalog.entity(&relation.target)?;
            // One level: what is embedded in something embedded is reached by its own read.
            Some(Embedded { relation, path, shape: Self::with(catalog, target, Vec::new()) })
        });
        Self::with(catalog, entity, embedded.collect())
    }

    fn with(catalog: &'a Catalog, entity: &'a Entity, embedded: Vec<Embedded<'a>>) -> Self {
        let members = Members::of(entity, &embedded);
        let keeps = |path: &DataPath| members.as_ref().is_none_or(|members| members.keeps(path));
        let columns = entity.fields.values().map(|field| Column {
            field,
            is_key: entity.key.contains(&field.name),
            refers: refers(catalog, &field.kind),
            own: only(field).filter(|path| !keeps(path)),
        });
        let columns = columns.collect();
        let blank = entity.fields.keys().map(|name| (name.clone(), Value::Null)).collect();
        Self { entity, columns, blank, members, embedded }
    }
}

impl<'a> Members<'a> {
    fn of(entity: &'a Entity, embedded: &[Embedded<'a>]) -> Option<Self> {
        let mut found = Self::default();
        for path in entity.fields.values().flat_map(paths).chain(embedded.iter().map(|e| e.path)) {
            match path.beyond(&[]) {
                Some(Beyond::Member(top)) => found.add(top, Take::Keep),
                _ => return None,
            }
        }
        for (top, take) in &mut found.0 {
            if let Some(members) = Self::below(top, entity, embedded) {
                *take = members;
            }
        }
        Some(found)
    }

    /// What to read below a name, where every path through it belongs to a field alone and none leads through another's end.
    fn below(top: &str, entity: &'a Entity, embedded: &[Embedded<'a>]) -> Option<Take<'a>> {
        let through = |path: &DataPath| path.beyond(&[top]).is_some();
        if embedded.iter().any(|e| through(e.path)) {
            return None;
        }
        let mut all: Vec<(usize, Vec<&'a str>)> = Vec::new();
        for (at, field) in entity.fields.values().enumerate().filter(|(_, field)| paths(field).any(through)) {
            all.push((at, only(field)?.members()?));
        }
        let meets = |a: &[&str], b: &[&str]| a.iter().zip(b).all(|(a, b)| a == b);
        let apart = all.iter().enumerate().all(|(n, (_, a))| all[..n].iter().all(|(_, b)| !meets(a, b)));
        apart.then(|| Self::tree(&all, 1))
    }

    /// `all`: paths that are equal before `depth`, none of which leads through another's end.
    fn tree(all: &[(usize, Vec<&'a str>)], depth: usize) -> Take<'a> {
        if let [(field, names)] = all
            && names.len() == depth
        {
            return Take::Field(*field);
        }
        let mut inside = Self::default();
        for name in all.iter().filter_map(|(_, names)| names.get(depth)) {
            let those: Vec<_> = all.iter().filter(|(_, names)| names.get(depth) == Some(name)).cloned().collect();
            inside.add(name, Self::tree(&those, depth + 1));
        }
        Take::Inside(inside)
    }

    fn add(&mut self, name: &'a str, take: Take<'a>) {
        if !self.0.iter().any(|(known, _)| *known == name) {
            self.0.push((name, take));
        }
    }

    /// Whether what this path leads to is kept in the item.
    fn keeps(&self, path: &DataPath) -> bool {
        self.0.iter().any(|(name, take)| matches!(take, Take::Keep) && path.beyond(&[name]).is_some())
    }

    /// Which of them this is. Members come in one order in every item, mostly the catalog's: looked for from `from` on.
    pub(super) fn find(&self, name: &str, from: usize) -> Option<usize> {
        let is = |at: &usize| self.0[*at].0 == name;
        (from..self.0.len()).chain(0..from.min(self.0.len())).find(is)
    }
}

/// Its one path, where it has one.
fn only(field: &Field) -> Option<&DataPath> {
    match &field.source {
        Source::Paths(paths) => match paths.as_slice() {
            [path] => Some(path),
            _ => None,
        },
        _ => None,
    }
}

fn paths(field: &Field) -> impl Iterator<Item = &DataPath> {
    let (several, parts) = match &field.source {
        Source::Paths(paths) => (paths.as_slice(), None),
        Source::Parts(parts) => (&[][..], Some(parts)),
        Source::Header(_) => (&[][..], None),
    };
    several.iter().chain(parts.into_iter().flat_map(|parts| parts.values()))
}

fn embedded(entity: &Entity) -> impl Iterator<Item = (&Relation, &DataPath)> {
    entity.relations.values().filter_map(|relation| match &relation.via {
        Via::Embedded { path } => Some((relation, path)),
        _ => None,
    })
}

fn refers<'a>(catalog: &'a Catalog, kind: &'a Type) -> Option<(&'a str, &'a [String])> {
    match kind {
        Type::Ref(target) => Some((target, catalog.entity(target).map(|e| e.key.as_slice()).unwrap_or_default())),
        Type::Array(of) => match of.as_ref() {
            of @ Type::Ref(_) => refers(catalog, of),
            _ => None,
        },
        _ => None,
    }
}
