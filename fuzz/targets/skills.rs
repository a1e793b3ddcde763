//! Skills: any front matter is compared, any entry is read, and what is verified is what was listed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp::parts::{Skill, SkillFiles, verify};
use serde_json::{Map, Value, json};

fuzz_target!(|data: &[u8]| {
    let uri = "skill://a/SKILL.md";
    let skill = Skill {
        uri: uri.to_owned(),
        name: "a".to_owned(),
        description: "b".to_owned(),
        frontmatter: Map::from_iter([("name".to_owned(), json!("a")), ("n".to_owned(), json!(1))]),
        files: SkillFiles::Dynamic,
    };
    if verify(&skill, uri, data).is_ok() {
        let text = String::from_utf8_lossy(data);
        assert!(text.contains("name") && text.contains('1'), "{text}");
    }
    if let Ok(entry) = serde_json::from_slice::<Value>(data)
        && let Ok(skill) = Skill::read(&entry)
    {
        assert!(skill.allows(&skill.uri).is_ok() && skill.allows("file:///etc/passwd").is_err());
        assert!(skill.fingerprint().is_some() == matches!(skill.files, SkillFiles::Listed(_)));
    }
});
