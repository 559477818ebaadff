//! `tokamak catalog show`: what a model is taught of a catalog, what it costs, and how its entities hang together.
//! Invariant: text that is meant for another program (a graph, JSON) stands alone on standard output.

use std::path::Path;

use base::similar_names;
use catalog::{Capability, Catalog};
use serde_json::{Map, Value, json};
use teach::SlotStyle;

use super::{find, graph, taught, tokens};
use crate::args::{CatalogShow, Picture};
use crate::failure::Failure;
use crate::output::Output;

pub fn run(file: Option<&Path>, args: &CatalogShow, output: &Output) -> Result<(), Failure> {
    let config = find::config(file, &args.folders)?;
    let catalog = find::catalog(&config, &args.catalog)?;
    let entities = entities(&catalog, &args.entity)?;
    let picture = match args.graph.unwrap_or(Picture::Mermaid) {
        Picture::Mermaid => graph::mermaid(&catalog, &entities),
        Picture::Svg => graph::svg(&catalog, &entities).ok_or(Failure::Undrawable)?,
    };
    if let Some(path) = &args.output {
        let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
        std::fs::write(path, &picture).map_err(unwritable)?;
    }
    if !output.json && args.graph.is_some() && args.output.is_none() {
        output.line(picture.trim_end());
        return Ok(());
    }
    let slots = args.slots.map_or(config.teaching.slots, SlotStyle::from);
    let shown = Shown::new(&catalog, entities, slots)?;
    if output.json {
        output.value(&shown.value(args, &picture));
    } else {
        output.line(&shown.text(output));
        match &args.output {
            Some(path) => output.line(&format!("\ngraph: {}", path.display())),
            None => output.line(&format!("\n```mermaid\n{}\n```", picture.trim_end())),
        }
    }
    for line in &shown.table.dropped {
        output.notice(&format!("warning: a line does not check and is not taught: {line}"));
    }
    Ok(())
}

/// Those that were asked for, in the catalog's order; all of them, where none was.
fn entities<'a>(catalog: &'a Catalog, asked: &[String]) -> Result<Vec<&'a str>, Failure> {
    if let Some(unknown) = asked.iter().find(|name| catalog.entity(name).is_none()) {
        let (api, near) = (catalog.id.to_string(), similar_names(unknown, catalog.entities.keys().map(String::as_str)));
        return Err(teach::SeedError::UnknownEntity { api, entity: unknown.clone(), near }.into());
    }
    let wanted = |name: &&str| asked.is_empty() || asked.iter().any(|a| a == name);
    Ok(catalog.entities.keys().map(String::as_str).filter(wanted).collect())
}

/// Each cost is two tables; a catalog of more capabilities is shown without.
const COSTED: usize = 150;

struct Shown<'a> {
    catalog: &'a Catalog,
    entities: Vec<&'a str>,
    table: teach::RenderedTable,
    total: usize,
    contract: usize,
    /// What each capability adds, in the catalog's order.
    costs: Vec<(&'a str, usize)>,
}

impl<'a> Shown<'a> {
    fn new(catalog: &'a Catalog, entities: Vec<&'a str>, slots: SlotStyle) -> Result<Self, Failure> {
        let table = taught::table(catalog, &entities, true, slots)?;
        let mine = catalog.capabilities.values().filter(|c| entities.contains(&c.entity.as_str()));
        let cost = |c: &'a Capability| (c.name.as_str(), taught::cost_of(catalog, &entities, &c.name, slots));
        let costs = mine.take(COSTED + 1).map(cost).collect::<Vec<_>>();
        let costs = if costs.len() > COSTED { Vec::new() } else { costs };
        let contract = taught::contract(catalog, &entities, slots);
        Ok(Self { catalog, total: tokens::count(&table.text), contract, entities, table, costs })
    }

    fn text(&self, output: &Output) -> String {
        let catalog = self.catalog;
        let head = format!("{} {} · {}", catalog.id, catalog.version, catalog.title);
        let counts = format!(
            "{} tokens (o200k): {} to read any table, {} for {} entities",
            self.total,
            self.contract,
            self.total.saturating_sub(self.contract),
            self.entities.len()
        );
        let widest = self.costs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let costs: Vec<String> = self
            .costs
            .iter()
            .map(|(name, cost)| match cost {
                0 => format!("  {name:widest$}  not taught"),
                cost => format!("  {name:widest$}  {cost}"),
            })
            .collect();
        format!("{}\n{}\n\n{counts}\n{}", output.bold(&head), self.table.text, costs.join("\n"))
    }

    fn value(&self, args: &CatalogShow, picture: &str) -> Value {
        let costs: Map<String, Value> =
            self.costs.iter().map(|(name, cost)| ((*name).to_owned(), json!(cost))).collect();
        let form = match args.graph.unwrap_or(Picture::Mermaid) {
            Picture::Mermaid => "mermaid",
            Picture::Svg => "svg",
        };
        let mut graph = json!({"form": form, "file": args.output});
        if args.output.is_none() {
            graph["text"] = json!(picture);
        }
        json!({
            "id": self.catalog.id,
            "version": self.catalog.version,
            "title": self.catalog.title,
            "digest": self.catalog.digest(),
            "entities": self.entities,
            "tokens": {"total": self.total, "contract": self.contract, "capabilities": costs},
            "table": self.table.text,
            "dropped": self.table.dropped,
            "graph": graph,
        })
    }
}
