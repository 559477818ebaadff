//! The comment `/*--- … ---*/` of a conformance file, which describes how to run it.

#[derive(Debug, Default, Clone)]
pub struct FrontMatter {
    /// The harness files that the test needs.
    pub includes: Vec<String>,
    /// How the test runs, such as `raw` or `async`.
    pub flags: Vec<String>,
    /// The features of the language that the test uses.
    pub features: Vec<String>,
    /// The name of the error that the test must end with.
    pub negative: Option<String>,
}

impl FrontMatter {
    /// Reads the forms of YAML that these files use: `key: [a, b]`, `key:` with `- a` below it, and `negative:` with a
    /// `type`.
    pub fn read(source: &str) -> Self {
        let mut front_matter = Self::default();
        let Some((_, rest)) = source.split_once("/*---") else { return front_matter };
        let Some((yaml, _)) = rest.split_once("---*/") else { return front_matter };
        let mut key = "";
        for line in yaml.lines() {
            let indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if let Some(item) = line.strip_prefix("- ") {
                front_matter.add(key, item);
            } else if let Some(("type", value)) = line.split_once(':').filter(|_| indented && key == "negative") {
                front_matter.negative = Some(value.trim().to_owned());
            } else if let Some((name, value)) = line.split_once(':').filter(|_| !indented) {
                key = name;
                let list = value.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']'));
                for item in list.into_iter().flat_map(|list| list.split(',')) {
                    front_matter.add(name, item);
                }
            }
        }
        front_matter
    }

    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|own_flag| own_flag == flag)
    }

    fn add(&mut self, key: &str, item: &str) {
        let list = match key {
            "includes" => &mut self.includes,
            "flags" => &mut self.flags,
            "features" => &mut self.features,
            _ => return,
        };
        let item = item.trim();
        if !item.is_empty() {
            list.push(item.to_owned());
        }
    }
}

#[test]
fn front_matter_is_read() {
    let front_matter = FrontMatter::read(
        "// x\n/*---\ndescription: >\n  type: none\nincludes: [a.js, b.js]\nnegative:\n  phase: parse\n  type: SyntaxError\nflags:\n  - async\n  - raw\nfeatures: []\n---*/ 1",
    );
    assert_eq!(front_matter.includes, ["a.js", "b.js"]);
    assert_eq!(front_matter.negative.as_deref(), Some("SyntaxError"));
    assert!(front_matter.has_flag("async") && front_matter.has_flag("raw") && !front_matter.has_flag("module"));
    assert!(front_matter.features.is_empty());
}
