//! The comment at the head of a conformance file that says how it is to be run: `/*--- … ---*/`.

#[derive(Debug, Default, Clone)]
pub struct Meta {
    pub includes: Vec<String>,
    pub flags: Vec<String>,
    pub features: Vec<String>,
    pub negative: Option<String>,
}

impl Meta {
    /// Only the few forms of YAML that these files use: `key: [a, b]`, `key:` and `- a` below it, and `negative:` with a `type`.
    pub fn read(source: &str) -> Self {
        let mut meta = Self::default();
        let Some((_, rest)) = source.split_once("/*---") else { return meta };
        let Some((front, _)) = rest.split_once("---*/") else { return meta };
        let mut key = "";
        for line in front.lines() {
            let indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if let Some(item) = line.strip_prefix("- ") {
                meta.add(key, item);
            } else if let Some(("type", value)) = line.split_once(':').filter(|_| indented && key == "negative") {
                meta.negative = Some(value.trim().to_owned());
            } else if let Some((name, value)) = line.split_once(':').filter(|_| !indented) {
                key = name;
                let list = value.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']'));
                for item in list.into_iter().flat_map(|list| list.split(',')) {
                    meta.add(name, item);
                }
            }
        }
        meta
    }

    pub fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|one| one == flag)
    }

    fn add(&mut self, key: &str, item: &str) {
        let into = match key {
            "includes" => &mut self.includes,
            "flags" => &mut self.flags,
            "features" => &mut self.features,
            _ => return,
        };
        let item = item.trim();
        if !item.is_empty() {
            into.push(item.to_owned());
        }
    }
}

#[test]
fn the_head_of_a_file_is_read() {
    let meta = Meta::read(
        "// x\n/*---\ndescription: >\n  type: none\nincludes: [a.js, b.js]\nnegative:\n  phase: parse\n  type: SyntaxError\nflags:\n  - async\n  - raw\nfeatures: []\n---*/ 1",
    );
    assert_eq!(meta.includes, ["a.js", "b.js"]);
    assert_eq!(meta.negative.as_deref(), Some("SyntaxError"));
    assert!(meta.is("async") && meta.is("raw") && !meta.is("module") && meta.features.is_empty());
}
