//! `tokamak catalog show`: prints the table that teaches a catalog, the cost of the table in tokens, and a graph of the entities.
//! Invariant: if standard output has a graph or JSON for another program, it has no other text.

use std::path::Path;

use base::similar_names;
use catalog::{Capability, Catalog};
use serde_json::{Map, Value, json};
use teach::SlotStyle;

use super::{find, graph, taught};
use crate::args::{CatalogShowArgs, GraphForm};
use crate::failure::Failure;
use crate::output::Output;

pub fn run(config_file: Option<&Path>, args: &CatalogShowArgs, output: &Output) -> Result<(), Failure> {
    let config = find::read_config(config_file, &args.folders)?;
    let catalog = find::find_catalog(&config, &args.catalog)?;
    let entities = chosen_entities(&catalog, &args.entity)?;
    let graph = match args.graph.unwrap_or(GraphForm::Mermaid) {
        GraphForm::Mermaid => graph::mermaid(&catalog, &entities),
        GraphForm::Svg => graph::svg(&catalog, &entities).ok_or(Failure::Undrawable)?,
    };
    if let Some(path) = &args.output {
        let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
        std::fs::write(path, &graph).map_err(unwritable)?;
    }
    if !output.json && args.graph.is_some() && args.output.is_none() {
        output.line(graph.trim_end());
        return Ok(());
    }
    let slots = args.slots.map_or(config.teaching.slots, SlotStyle::from);
    let shown = ShownCatalog::new(&catalog, entities, slots)?;
    if output.json {
        output.value(&shown.value(args, &graph));
    } else {
        output.line(&shown.text(output));
        match &args.output {
            Some(path) => output.line(&format!("\nthe graph is in the file {}", path.display())),
            None => output.line(&format!("\n```mermaid\n{}\n```", graph.trim_end())),
        }
    }
    for line in &shown.table.dropped {
        output.notice(&format!("warning: this line of the table is not valid, so it is not taught: {line}"));
    }
    Ok(())
}

/// Returns the entities that the arguments name, in the order of the catalog. Without such arguments it returns all entities.
fn chosen_entities<'a>(catalog: &'a Catalog, names: &[String]) -> Result<Vec<&'a str>, Failure> {
    if let Some(unknown) = names.iter().find(|name| catalog.entity(name).is_none()) {
        let near = similar_names(unknown, catalog.entities.keys().map(String::as_str));
        let api = catalog.id.to_string();
        return Err(teach::SeedError::UnknownEntity { api, entity: unknown.clone(), near }.into());
    }
    let is_chosen = |name: &&str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    Ok(catalog.entities.keys().map(String::as_str).filter(is_chosen).collect())
}

/// The largest number of capabilities whose costs are shown. Each cost needs two tables, so costs of more capabilities would take too long.
const MAX_COSTS: usize = 150;

/// The table of the chosen entities, and its costs.
struct ShownCatalog<'a> {
    catalog: &'a Catalog,
    entities: Vec<&'a str>,
    table: teach::RenderedTable,
    /// The number of tokens of the whole table.
    total: usize,
    /// The number of tokens of the contract, which is the first part of the table.
    contract: usize,
    /// Each capability with its tokens, in the order of the catalog. The list is empty if there are more than `MAX_COSTS` capabilities.
    costs: Vec<(&'a str, usize)>,
}

impl<'a> ShownCatalog<'a> {
    fn new(catalog: &'a Catalog, entities: Vec<&'a str>, slots: SlotStyle) -> Result<Self, Failure> {
        let table = taught::table(catalog, &entities, true, slots)?;
        let capabilities = catalog.capabilities.values().filter(|c| entities.contains(&c.entity.as_str()));
        let cost = |c: &'a Capability| (c.name.as_str(), taught::capability_tokens(catalog, &entities, &c.name, slots));
        let costs = capabilities.take(MAX_COSTS + 1).map(cost).collect::<Vec<_>>();
        let costs = if costs.len() > MAX_COSTS { Vec::new() } else { costs };
        let contract = taught::contract_tokens(catalog, &entities, slots);
        Ok(Self { catalog, total: taught::count_tokens(&table.text), contract, entities, table, costs })
    }

    fn text(&self, output: &Output) -> String {
        let catalog = self.catalog;
        let head = format!("{} {} · {}", catalog.id, catalog.version, catalog.title);
        let counts = format!(
            "{} tokens (o200k): {} for how to read a table, which a session is taught once, and {} for {} entities",
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

    fn value(&self, args: &CatalogShowArgs, graph_text: &str) -> Value {
        let costs: Map<String, Value> =
            self.costs.iter().map(|(name, cost)| ((*name).to_owned(), json!(cost))).collect();
        let form = match args.graph.unwrap_or(GraphForm::Mermaid) {
            GraphForm::Mermaid => "mermaid",
            GraphForm::Svg => "svg",
        };
        let mut graph = json!({"form": form, "file": args.output});
        if args.output.is_none() {
            graph["text"] = json!(graph_text);
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
