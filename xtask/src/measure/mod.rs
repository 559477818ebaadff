//! `cargo xtask measure`: prints the sizes of the source tree, and for comparison those of an earlier revision. No size is enforced.
//! Invariant: every number is counted from parsed files, so the same text always gives the same number.

mod sizes;
mod types;
mod walks;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::source::Tree;
use sizes::Sizes;
use walks::Walk;

/// The measurements of one source tree.
struct TreeMeasures {
    sizes: Sizes,
    shared_names: Vec<types::SharedName>,
    /// The walks (recorded paths of calls) by their names. `None` if the tree does not have a walk of this name.
    walks: Vec<(String, Option<Walk>)>,
}

pub struct Report {
    pub lines: Vec<String>,
    /// The steps of walks that do not agree with the source.
    pub findings: Vec<String>,
    pub summary: String,
}

/// Measures the tree at `root`, and the revision `before` of its repository if one is given.
pub fn run(root: &Path, before: Option<&str>) -> Result<Report> {
    let now = measure(root)?;
    let earlier = match before {
        Some(revision) => {
            let tree = Checkout::of(root, revision)?;
            Some(measure(&tree.folder)?)
        }
        None => None,
    };
    let mut lines = Vec::new();
    table(&mut lines, earlier.as_ref(), &now);
    crates(&mut lines, earlier.as_ref(), &now);
    lines.push("Domain types that share a name (idioms read with their module are left out):".to_owned());
    lines.extend(now.shared_names.iter().map(|shared| format!("  {shared}")));
    let mut findings = Vec::new();
    for (name, walk) in &now.walks {
        if let Some(walk) = walk {
            lines.push(format!("Walk of {name}: {} hops, {} types", walk.hops, walk.types.len()));
            lines.extend(walk.steps.iter().map(|step| format!("  {step}")));
            lines.push(format!("  types: {}", walk.types.iter().cloned().collect::<Vec<_>>().join(", ")));
            findings.extend(walk.findings.iter().cloned());
        }
    }
    let summary = format!("measure: {} files of product code", now.sizes.files.len());
    Ok(Report { lines, findings, summary })
}

fn measure(root: &Path) -> Result<TreeMeasures> {
    let tree = Tree::read(root)?;
    let walks = follow_walks(root, &tree);
    Ok(TreeMeasures { sizes: sizes::sizes(&tree), shared_names: types::shared(&tree), walks })
}

/// Follows the walks of the tree by their names. A revision without a walk has `None`.
fn follow_walks(root: &Path, tree: &Tree) -> Vec<(String, Option<Walk>)> {
    ["plasm_run", "run_js"]
        .map(|name| {
            let path = format!("xtask/walks/{name}.txt");
            let text = std::fs::read_to_string(root.join(&path)).ok();
            (name.to_owned(), text.map(|text| walks::follow(tree, &path, &text)))
        })
        .into()
}

/// Returns the lines of the walks that do not fit the source, as `path:line: mistake`.
pub fn stale_walks(root: &Path, tree: &Tree) -> Vec<String> {
    follow_walks(root, tree).into_iter().filter_map(|(_, walk)| walk).flat_map(|walk| walk.findings).collect()
}

/// One line of the report: its title, and the function that returns its value for a measured tree.
type ReportRow = (&'static str, fn(&TreeMeasures) -> String);

/// Adds a line for each number: its name, the value of the earlier revision if there is one, and the value of this tree.
fn table(lines: &mut Vec<String>, earlier: Option<&TreeMeasures>, now: &TreeMeasures) {
    let rows: &[ReportRow] = &[
        ("code lines, product", |m| m.sizes.product().to_string()),
        ("code lines, tests", |m| m.sizes.tests().to_string()),
        ("files of the product", |m| m.sizes.files.len().to_string()),
        ("  median lines", |m| m.sizes.quantile(50).to_string()),
        ("  90 % have at most", |m| m.sizes.quantile(90).to_string()),
        ("  longest", |m| m.sizes.longest_file()),
        ("  under 60 lines", |m| m.sizes.files.iter().filter(|file| file.lines < 60).count().to_string()),
        ("  over 800 lines", |m| m.sizes.files.iter().filter(|file| file.lines > 800).count().to_string()),
        ("functions of the product", |m| m.sizes.functions.len().to_string()),
        ("  longest", |m| m.sizes.longest_function()),
        ("  over 100 lines", |m| m.sizes.functions.iter().filter(|f| f.lines > 100).count().to_string()),
        ("comment lines inside bodies, of 100 code lines", |m| m.sizes.share(m.sizes.inner_comments)),
        ("documentation lines, of 100 code lines", |m| m.sizes.share(m.sizes.documentation)),
        ("log statements in the product", |m| m.sizes.logs.to_string()),
        ("log statements in the path of a run", |m| m.sizes.logs_of_runs.to_string()),
        ("  of 1000 code lines of these crates", |m| m.sizes.run_log_share()),
        ("type names used twice", |m| m.shared_names.iter().filter(|n| n.places.len() == 2).count().to_string()),
        ("type names used more often", |m| m.shared_names.iter().filter(|n| n.places.len() > 2).count().to_string()),
        ("hops of plasm_run", |m| hops(m, 0)),
        ("types of plasm_run", |m| types(m, 0)),
        ("hops of run_js", |m| hops(m, 1)),
        ("types of run_js", |m| types(m, 1)),
    ];
    for (name, value) in rows {
        lines.push(row(name, earlier.map(value), &value(now)));
    }
}

fn hops(measured: &TreeMeasures, index: usize) -> String {
    measured.walks[index].1.as_ref().map_or("-".to_owned(), |walk| walk.hops.to_string())
}

fn types(measured: &TreeMeasures, index: usize) -> String {
    measured.walks[index].1.as_ref().map_or("-".to_owned(), |walk| walk.types.len().to_string())
}

fn crates(lines: &mut Vec<String>, earlier: Option<&TreeMeasures>, now: &TreeMeasures) {
    lines.push("Code lines by crate, product and tests:".to_owned());
    let empty = sizes::CodeLines::default();
    let all = earlier.iter().copied().chain([now]);
    let names: BTreeSet<&String> = all.flat_map(|measured| measured.sizes.crates.keys()).collect();
    for name in names {
        let count = |measured: &TreeMeasures| {
            let count = measured.sizes.crates.get(name).unwrap_or(&empty);
            format!("{} + {}", count.product, count.tests)
        };
        lines.push(row(&format!("  {name}"), earlier.map(count), &count(now)));
    }
}

fn row(name: &str, earlier: Option<String>, now: &str) -> String {
    match earlier {
        Some(earlier) => format!("{name:<48} {earlier:<56} {now}"),
        None => format!("{name:<48} {now}"),
    }
}

/// A revision unpacked into a temporary folder, which is removed when this value is dropped.
struct Checkout {
    folder: PathBuf,
}

impl Checkout {
    fn of(root: &Path, revision: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("xtask-measure-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let checkout = Self { folder };
        let mut archive = Command::new("git")
            .args(["archive", "--format=tar", revision])
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .context("git cannot be started")?;
        let output = archive.stdout.take().context("git archive has no output")?;
        let unpacked = Command::new("tar")
            .args(["x", "-C"])
            .arg(&checkout.folder)
            .stdin(output)
            .status()
            .context("tar cannot be started")?;
        let archived = archive.wait().context("git archive cannot be waited for")?;
        ensure!(archived.success() && unpacked.success(), "revision {revision} cannot be unpacked");
        Ok(checkout)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // If the removal fails, the system cleans its temporary folder later.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
