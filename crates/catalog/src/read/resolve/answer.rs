//! Resolves the description of answers: the place of the rows, the entity of the rows, and the fields that an answer
//! contains.
//! Invariant: only a query or a search returns a list of rows. The answer of any other capability has at most one
//! row.

use super::capability::WrittenCapability;
use super::{CatalogResolver, Mistake};
use crate::codes;
use crate::model::{Kind, RowForm, Rows};
use crate::path::DataPath;
use crate::read::raw::Paths;
use crate::read::spans::YamlTarget;

impl CatalogResolver<'_> {
    /// Resolves the place and the form of the rows. Returns `None` after a mistake.
    pub(super) fn resolve_rows(&mut self, written: &WrittenCapability<'_>) -> Option<Rows> {
        let raw = written.raw;
        let is_list = written.kind.is_list();
        let paths = if is_list { &raw.rows } else { &raw.row };
        let paths_of_wrong_key = if is_list { &raw.row } else { &raw.rows };
        let key = if is_list { "rows" } else { "row" };
        if paths_of_wrong_key.is_some() {
            let wrong_key = if is_list { "row" } else { "rows" };
            let gives = if is_list { "gives many rows" } else { "gives one row" };
            let message = format!("`{}` {gives}; write `{key}`, not `{wrong_key}`", written.name);
            return self.refuse_rows(written.at.key(wrong_key).on_key(), message);
        }
        let forms = [("wrap", raw.wrap.is_some()), ("entries", raw.entries.is_some()), ("columns", raw.columns)];
        let forms: Vec<&str> = forms.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect();
        if let [first, rest @ ..] = forms.as_slice()
            && (!rest.is_empty() || !is_list)
        {
            let message =
                format!("`{}`: at most one of `wrap`, `entries`, `columns`, and only for a list", written.name);
            return self.refuse_rows(written.at.key(rest.first().unwrap_or(first)).on_key(), message);
        }
        for (key, field) in [("wrap", &raw.wrap), ("entries", &raw.entries)] {
            if let Some(field) = field
                && !self.check_field(&written.at.key(key), written.entity, field)
            {
                return None;
            }
        }
        if raw.sparse && !(is_list && paths.is_some()) {
            let message =
                format!("`{}`: `sparse: true` is for a list with `rows` that the answer may leave out", written.name);
            return self.refuse_rows(written.at.key("sparse").on_key(), message);
        }
        let has_no_answer = raw.answer.is_some();
        if has_no_answer && (paths.is_some() || written.kind.is_read()) {
            let message = format!("`{}`: `answer: none` is for a write whose answer holds no row", written.name);
            return self.refuse_rows(written.at.key("answer").on_key(), message);
        }
        // The answer of a delete or an action has a row only if the catalog gives its path or its entity.
        let has_no_path = paths.is_none() && raw.returns.is_none();
        let gives_nothing = has_no_answer || (matches!(written.kind, Kind::Delete | Kind::Action) && has_no_path);
        let form = match (&raw.wrap, &raw.entries) {
            _ if gives_nothing => RowForm::Nothing,
            (Some(field), _) => RowForm::Wrap(field.clone()),
            (_, Some(field)) => RowForm::Entries(field.clone()),
            _ if raw.columns => RowForm::Columns,
            _ if is_list => RowForm::List,
            _ => RowForm::One,
        };
        let at = self.resolve_row_paths(written, key, paths.as_ref());
        let item = raw.item.as_ref().map(|path| self.parse_data_path(&written.at.key("item"), path));
        Some(Rows { at, item, form, sparse: raw.sparse })
    }

    fn resolve_row_paths(
        &mut self,
        written: &WrittenCapability<'_>,
        key: &str,
        paths: Option<&Paths>,
    ) -> Vec<DataPath> {
        let at = written.at.key(key);
        let connection = written.raw.paging.as_ref().and_then(|p| p.connection.as_ref());
        match (paths, connection) {
            (Some(Paths::One(path)), _) => vec![self.parse_data_path(&at, path)],
            (Some(Paths::Several(paths)), _) => {
                if paths.is_empty() {
                    let message = format!("`{}`: no path at all; write one, or leave `{key}` out", written.name);
                    self.report(Mistake::new(codes::SHAPE, at.on_key(), message));
                }
                paths.iter().enumerate().map(|(n, path)| self.parse_data_path(&at.item(n), path)).collect()
            }
            (None, Some(connection)) => vec![DataPath::from(format!("{connection}.nodes"))],
            (None, None) => vec![DataPath::default()],
        }
    }

    fn refuse_rows(&mut self, target: YamlTarget, message: String) -> Option<Rows> {
        self.report(Mistake::new(codes::SHAPE, target, message));
        None
    }

    /// Resolves the entity of the answer's rows. Returns `None` after a mistake.
    pub(super) fn resolve_returns(&mut self, written: &WrittenCapability<'_>, entity: &str) -> Option<String> {
        let Some(other) = &written.raw.returns else { return Some(entity.to_owned()) };
        if written.kind.is_read() {
            let message = format!("`{}` reads {entity}; only a write `returns` something else", written.name);
            self.report(Mistake::new(codes::SHAPE, written.at.key("returns").on_key(), message));
            return None;
        }
        self.check_entity_name(&written.at.key("returns"), other).then(|| other.clone())
    }

    /// Resolves the names of the fields that the answer contains.
    pub(super) fn resolve_given_fields(&mut self, written: &WrittenCapability<'_>, fields: &[String]) -> Vec<String> {
        let at = written.at.key("gives");
        for (n, field) in fields.iter().enumerate() {
            self.check_field(&at.item(n), written.entity, field);
        }
        fields.to_vec()
    }
}
