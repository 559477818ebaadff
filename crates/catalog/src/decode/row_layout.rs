//! The layout of an entity's rows, computed once for all rows of an answer: the members of an item from which each
//! field is read.
//! Invariant: if the value of a field is moved out of its item, the field has exactly one path, and no other path
//! needs this value or a part of it.

use serde_json::Value;

use crate::model::{Catalog, Entity, Field, FieldSource, Relation, Row, Via};
use crate::path::{DataPath, NextStep};
use crate::types::Type;

/// How the rows of an entity are read from the items of an answer.
pub(super) struct RowLayout<'a> {
    pub entity: &'a Entity,
    /// The fields of the entity, in its order.
    pub columns: Vec<ColumnLayout<'a>>,
    /// A row in which every field is `null`. Each new row starts as a clone of this row, so the field names are not
    /// hashed again.
    pub blank: Row,
    /// The members of an item that are read. `None` means that a path reads the item itself, so the whole item is
    /// needed.
    pub members: Option<MemberPlan<'a>>,
    pub embedded: Vec<EmbeddedLayout<'a>>,
}

/// How the value of one field is read.
pub(super) struct ColumnLayout<'a> {
    pub field: &'a Field,
    pub is_key: bool,
    /// The name and the key of the entity that the field refers to, if it is a reference or a list of references.
    pub refers_to: Option<(&'a str, &'a [String])>,
    /// The path from which the value is moved out of the item. A path is exclusive if no other path overlaps it.
    /// `None` means that the value is copied from the members that are stored whole.
    pub exclusive_path: Option<&'a DataPath>,
}

/// How the rows of an embedded relation are read.
pub(super) struct EmbeddedLayout<'a> {
    pub relation: &'a Relation,
    /// The path of the embedded rows in the parent's item.
    pub path: &'a DataPath,
    pub layout: RowLayout<'a>,
}

/// The members of an object that are read, by name. The other members are skipped.
#[derive(Default)]
pub(super) struct MemberPlan<'a>(pub Vec<(&'a str, MemberUse<'a>)>);

/// How a member of an object is read.
pub(super) enum MemberUse<'a> {
    /// The value of the member is the value of the field with this number.
    Field(usize),
    /// The member is stored whole, because several paths overlap in it or a path selects several values in it.
    Keep,
    /// The member is an object of which these members are read.
    Object(MemberPlan<'a>),
}

impl<'a> RowLayout<'a> {
    pub(super) fn new(catalog: &'a Catalog, entity: &'a Entity) -> Self {
        let embedded = embedded_relations(entity).filter_map(|(relation, path)| {
            let target = catalog.entity(&relation.target)?;
            // Only one level is embedded, because two entities may embed each other. A get of an embedded row reads
            // the rows that are embedded in it.
            Some(EmbeddedLayout { relation, path, layout: Self::with_embedded(catalog, target, Vec::new()) })
        });
        Self::with_embedded(catalog, entity, embedded.collect())
    }

    fn with_embedded(catalog: &'a Catalog, entity: &'a Entity, embedded: Vec<EmbeddedLayout<'a>>) -> Self {
        let members = MemberPlan::new(entity, &embedded);
        let is_kept = |path: &DataPath| members.as_ref().is_none_or(|members| members.stores_whole(path));
        let columns = entity.fields.values().map(|field| ColumnLayout {
            field,
            is_key: entity.key.contains(&field.name),
            refers_to: reference_target(catalog, &field.kind),
            exclusive_path: only_path(field).filter(|path| !is_kept(path)),
        });
        let columns = columns.collect();
        let blank = entity.fields.keys().map(|name| (name.clone(), Value::Null)).collect();
        Self { entity, columns, blank, members, embedded }
    }
}

impl<'a> MemberPlan<'a> {
    /// Returns the plan for an item, or `None` if a path reads the item itself.
    fn new(entity: &'a Entity, embedded: &[EmbeddedLayout<'a>]) -> Option<Self> {
        let mut plan = Self::default();
        for path in entity.fields.values().flat_map(body_paths).chain(embedded.iter().map(|e| e.path)) {
            match path.step_after(&[]) {
                Some(NextStep::Member(name)) => plan.add(name, MemberUse::Keep),
                _ => return None,
            }
        }
        for (name, member) in &mut plan.0 {
            if let Some(split) = Self::split_member(name, entity, embedded) {
                *member = split;
            }
        }
        Some(plan)
    }

    /// Returns how the member `name` of an item can be split into values of single fields, or `None` if it must be kept whole.
    fn split_member(name: &str, entity: &'a Entity, embedded: &[EmbeddedLayout<'a>]) -> Option<MemberUse<'a>> {
        let leads_through = |path: &DataPath| path.step_after(&[name]).is_some();
        if embedded.iter().any(|e| leads_through(e.path)) {
            return None;
        }
        let mut field_paths: Vec<(usize, Vec<&'a str>)> = Vec::new();
        for (number, field) in entity.fields.values().enumerate().filter(|(_, f)| body_paths(f).any(leads_through)) {
            field_paths.push((number, only_path(field)?.object_member_names()?));
        }
        // Two paths overlap if one of them begins with the other. The value of overlapping paths would have to be
        // moved into two fields.
        let overlap = |a: &[&str], b: &[&str]| a.iter().zip(b).all(|(a, b)| a == b);
        let are_disjoint = field_paths
            .iter()
            .enumerate()
            .all(|(n, (_, path))| field_paths[..n].iter().all(|(_, earlier)| !overlap(path, earlier)));
        are_disjoint.then(|| Self::plan_below(&field_paths, 1))
    }

    /// Builds the plan below the first `depth` names, which are equal in all of `field_paths`. The caller has checked
    /// that no path begins with another path.
    fn plan_below(field_paths: &[(usize, Vec<&'a str>)], depth: usize) -> MemberUse<'a> {
        if let [(field, names)] = field_paths
            && names.len() == depth
        {
            return MemberUse::Field(*field);
        }
        let mut plan = Self::default();
        for name in field_paths.iter().filter_map(|(_, names)| names.get(depth)) {
            let through_name: Vec<_> =
                field_paths.iter().filter(|(_, names)| names.get(depth) == Some(name)).cloned().collect();
            plan.add(name, Self::plan_below(&through_name, depth + 1));
        }
        MemberUse::Object(plan)
    }

    /// Adds a member unless the plan already has a member of this name.
    fn add(&mut self, name: &'a str, member: MemberUse<'a>) {
        if !self.0.iter().any(|(known, _)| *known == name) {
            self.0.push((name, member));
        }
    }

    /// Returns whether the value at this path is in a member that is stored whole.
    fn stores_whole(&self, path: &DataPath) -> bool {
        self.0.iter().any(|(name, member)| matches!(member, MemberUse::Keep) && path.step_after(&[name]).is_some())
    }

    /// Returns the position of the member `name` in the plan, searching from `start` on. The items of a list have
    /// their members in the same order, mostly the catalog's order, so the first comparison usually succeeds.
    pub(super) fn position(&self, name: &str, start: usize) -> Option<usize> {
        let is_member = |at: &usize| self.0[*at].0 == name;
        (start..self.0.len()).chain(0..start.min(self.0.len())).find(is_member)
    }
}

/// Returns the path of a field with exactly one path.
fn only_path(field: &Field) -> Option<&DataPath> {
    match &field.source {
        FieldSource::Paths(paths) => match paths.as_slice() {
            [path] => Some(path),
            _ => None,
        },
        _ => None,
    }
}

/// Returns every path of a field in the body of an answer.
fn body_paths(field: &Field) -> impl Iterator<Item = &DataPath> {
    let alternatives: &[DataPath] = match &field.source {
        FieldSource::Paths(paths) => paths.as_slice(),
        FieldSource::Parts(_) | FieldSource::Header(_) => &[],
    };
    let parts = match &field.source {
        FieldSource::Parts(parts) => Some(parts),
        FieldSource::Paths(_) | FieldSource::Header(_) => None,
    };
    alternatives.iter().chain(parts.into_iter().flat_map(|parts| parts.values()))
}

fn embedded_relations(entity: &Entity) -> impl Iterator<Item = (&Relation, &DataPath)> {
    entity.relations.values().filter_map(|relation| match &relation.via {
        Via::Embedded { path } => Some((relation, path)),
        _ => None,
    })
}

fn reference_target<'a>(catalog: &'a Catalog, kind: &'a Type) -> Option<(&'a str, &'a [String])> {
    match kind {
        Type::Ref(target) => Some((target, catalog.entity(target).map(|e| e.key.as_slice()).unwrap_or_default())),
        Type::Array(item) => match item.as_ref() {
            item @ Type::Ref(_) => reference_target(catalog, item),
            _ => None,
        },
        _ => None,
    }
}
