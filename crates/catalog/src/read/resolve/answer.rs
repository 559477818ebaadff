//! What an answer holds: where its rows are, of which entity, with which fields.
//! Invariant: a list has rows, everything else has at most one.

use super::Cx;
use super::Mistake;
use super::capability::Written;
use crate::codes;
use crate::model::{Kind, RowForm, Rows};
use crate::path::DataPath;
use crate::read::places::Spot;
use crate::read::raw::Paths;

impl Cx<'_> {
    pub(super) fn rows(&mut self, of: &Written<'_>) -> Option<Rows> {
        let raw = of.raw;
        let (given, other) = if of.kind.is_list() { (&raw.rows, &raw.row) } else { (&raw.row, &raw.rows) };
        let (key, wrong_key) = if of.kind.is_list() { ("rows", "row") } else { ("row", "rows") };
        if other.is_some() {
            let what = if of.kind.is_list() { "gives many rows" } else { "gives one row" };
            let message = format!("`{}` {what}; write `{key}`, not `{wrong_key}`", of.name);
            return self.misread(of.at.key(wrong_key).here(), message);
        }
        let forms = [("wrap", raw.wrap.is_some()), ("entries", raw.entries.is_some()), ("columns", raw.columns)];
        let forms: Vec<&str> = forms.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
        if let [first, rest @ ..] = forms.as_slice()
            && (!rest.is_empty() || !of.kind.is_list())
        {
            let message = format!("`{}`: at most one of `wrap`, `entries`, `columns`, and only for a list", of.name);
            return self.misread(of.at.key(rest.first().unwrap_or(first)).here(), message);
        }
        for (key, field) in [("wrap", &raw.wrap), ("entries", &raw.entries)] {
            if let Some(field) = field
                && !self.field_of(&of.at.key(key), of.target, field)
            {
                return None;
            }
        }
        if raw.sparse && !(of.kind.is_list() && given.is_some()) {
            let message =
                format!("`{}`: `sparse: true` is for a list with `rows` that the answer may leave out", of.name);
            return self.misread(of.at.key("sparse").here(), message);
        }
        let silent = raw.answer.is_some();
        if silent && (given.is_some() || of.kind.is_read()) {
            let message = format!("`{}`: `answer: none` is for a write whose answer holds no row", of.name);
            return self.misread(of.at.key("answer").here(), message);
        }
        // Deleting answers with nothing, an action with nothing of interest, unless the catalog says where its row is.
        let unsaid = given.is_none() && raw.returns.is_none();
        let quiet = silent || (matches!(of.kind, Kind::Delete | Kind::Action) && unsaid);
        let form = match (&raw.wrap, &raw.entries) {
            _ if quiet => RowForm::Nothing,
            (Some(field), _) => RowForm::Wrap(field.clone()),
            (_, Some(field)) => RowForm::Entries(field.clone()),
            _ if raw.columns => RowForm::Columns,
            _ if of.kind.is_list() => RowForm::List,
            _ => RowForm::One,
        };
        let at = self.row_paths(of, key, given.as_ref());
        let item = raw.item.as_ref().map(|path| self.data_path(&of.at.key("item"), path));
        Some(Rows { at, item, form, sparse: raw.sparse })
    }

    fn row_paths(&mut self, of: &Written<'_>, key: &str, given: Option<&Paths>) -> Vec<DataPath> {
        let at = of.at.key(key);
        let connection = of.raw.paging.as_ref().and_then(|p| p.connection.as_ref());
        match (given, connection) {
            (Some(Paths::One(path)), _) => vec![self.data_path(&at, path)],
            (Some(Paths::Several(paths)), _) => {
                if paths.is_empty() {
                    let message = format!("`{}`: no path at all; write one, or leave `{key}` out", of.name);
                    self.report(Mistake::new(codes::SHAPE, at.here(), message));
                }
                paths.iter().enumerate().map(|(n, path)| self.data_path(&at.item(n), path)).collect()
            }
            (None, Some(connection)) => vec![DataPath::from(format!("{connection}.nodes"))],
            (None, None) => vec![DataPath::default()],
        }
    }

    fn misread(&mut self, spot: Spot, message: String) -> Option<Rows> {
        self.report(Mistake::new(codes::SHAPE, spot, message));
        None
    }

    pub(super) fn returns(&mut self, of: &Written<'_>, entity: &str) -> Option<String> {
        let Some(other) = &of.raw.returns else { return Some(entity.to_owned()) };
        if of.kind.is_read() {
            let message = format!("`{}` reads {entity}; only a write `returns` something else", of.name);
            self.report(Mistake::new(codes::SHAPE, of.at.key("returns").here(), message));
            return None;
        }
        self.entity_name(&of.at.key("returns"), other).then(|| other.clone())
    }

    pub(super) fn gives(&mut self, of: &Written<'_>, fields: &[String]) -> Vec<String> {
        let at = of.at.key("gives");
        for (n, field) in fields.iter().enumerate() {
            self.field_of(&at.item(n), of.target, field);
        }
        fields.to_vec()
    }
}
