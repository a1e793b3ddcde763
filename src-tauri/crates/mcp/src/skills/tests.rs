use super::*;
use serde_json::json;

const MAIN: &str = "skill://pdf-processing/SKILL.md";
const FORMS: &str = "skill://pdf-processing/references/FORMS.md";
const TEXT: &str =
    "---\nname: pdf-processing\ndescription: Extract, fill, and assemble PDF documents\n---\n\nSkill body.\n";

fn digest(text: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(text)))
}

fn entry(main: &str) -> Value {
    json!({"uri": MAIN,
        "frontmatter": {"name": "pdf-processing", "description": "Extract, fill, and assemble PDF documents"},
        "resources": [
            {"uri": MAIN, "digest": digest(main), "size": main.len()},
            {"uri": FORMS, "digest": digest("Forms.\n"), "size": 7}]})
}

fn skill(main: &str) -> Skill {
    Skill::read(&entry(main)).unwrap()
}

#[test]
fn an_honest_skill_is_verified_file_by_file() {
    let skill = skill(TEXT);
    assert_eq!((skill.name.as_str(), skill.uri.as_str()), ("pdf-processing", MAIN));
    assert_eq!(verify(&skill, MAIN, TEXT.as_bytes()), Ok(()));
    assert_eq!(verify(&skill, FORMS, b"Forms.\n"), Ok(()));
}

#[test]
fn what_was_tampered_with_is_refused() {
    let honest = skill(TEXT);
    let evil = TEXT.replace("Skill body.", "Evil body!!");
    assert_eq!(evil.len(), TEXT.len());
    assert_eq!(verify(&honest, MAIN, evil.as_bytes()), Err(SkillFault::Digest));
    let longer = format!("{TEXT}more\n");
    let (listed, got) = (TEXT.len() as u64, longer.len() as u64);
    assert_eq!(verify(&honest, MAIN, longer.as_bytes()), Err(SkillFault::Size { listed, got }));
    // Size and digest are right, the front matter is another one.
    let other = TEXT.replace("Extract, fill, and assemble PDF documents", "Exfiltrate credentials");
    let fault = SkillFault::FrontMatter("description differs".to_owned());
    assert_eq!(verify(&skill(&other), MAIN, other.as_bytes()), Err(fault));
}

#[test]
fn a_file_that_is_not_listed_is_refused_before_it_is_asked_for() {
    let skill = skill(TEXT);
    for uri in
        ["skill://pdf-processing/scripts/extract.py", "skill://other/SKILL.md", "file:///etc/passwd", ""]
    {
        assert_eq!(skill.allows(uri), Err(SkillFault::Unlisted), "{uri}");
        assert_eq!(verify(&skill, uri, b""), Err(SkillFault::Unlisted), "{uri}");
    }
}

#[test]
fn a_dynamic_skill_is_bound_to_its_directory_and_its_front_matter() {
    let mut entry = entry(TEXT);
    entry["resources"] = json!("dynamic");
    let skill = Skill::read(&entry).unwrap();
    assert_eq!(skill.fingerprint(), None);
    assert_eq!(verify(&skill, MAIN, TEXT.replace("body", "anything").as_bytes()), Ok(()));
    assert_eq!(verify(&skill, FORMS, b"whatever"), Ok(()));
    for uri in [
        "skill://pdf-processing-2/SKILL.md",
        "skill://pdf-processing",
        "skill://pdf-processing/",
        "skill://pdf-processing/../x",
        "skill://pdf-processing/a/%2E%2e/x",
        "skill://pdf-processing/a%2fb",
        "skill://pdf-processing/a//b",
        "skill://pdf-processing/a?b",
    ] {
        assert_eq!(verify(&skill, uri, b""), Err(SkillFault::Unlisted), "{uri}");
    }
    let fault = verify(&skill, MAIN, TEXT.replace("name: pdf", "name: df").as_bytes());
    assert_eq!(fault, Err(SkillFault::FrontMatter("name differs".to_owned())));
    let large = vec![0; MAX_BYTES as usize + 1];
    assert_eq!(verify(&skill, FORMS, &large), Err(SkillFault::TooLarge(MAX_BYTES + 1)));
}

#[test]
fn an_entry_that_cannot_be_verified_against_is_refused() {
    let changed = |change: fn(&mut Value)| {
        let mut entry = entry(TEXT);
        change(&mut entry);
        Skill::read(&entry)
    };
    let changes: [fn(&mut Value); 19] = [
        |e| *e = json!(null),
        |e| e["uri"] = json!(3),
        |e| e["uri"] = json!("skill://pdf-processing/skill.txt"),
        |e| e["uri"] = json!("/SKILL.md"),
        |e| e["uri"] = json!("skill:///SKILL.md"),
        |e| e["frontmatter"] = json!("name: x"),
        |e| e["frontmatter"]["name"] = json!(""),
        |e| e["frontmatter"]["description"] = json!(null),
        |e| e["resources"] = json!(null),
        |e| e["resources"] = json!("static"),
        |e| e["resources"] = json!([]),
        |e| e["resources"][0]["uri"] = json!("skill://pdf-processing/OTHER.md"),
        |e| e["resources"][1]["uri"] = json!(MAIN),
        |e| e["resources"][1]["uri"] = json!("skill://other/x.md"),
        |e| e["resources"][1]["uri"] = json!("skill://pdf-processing/../other/x.md"),
        |e| e["resources"][1]["digest"] = json!("md5:abc"),
        |e| e["resources"][1]["digest"] = json!(format!("sha256:{}", "g".repeat(64))),
        |e| e["resources"][1]["size"] = json!("7"),
        |e| e["resources"][1]["size"] = json!(-7),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert!(matches!(changed(change), Err(SkillFault::Entry(_))), "change {at}");
    }
    let upper = changed(|e| {
        e["resources"][1]["digest"] = json!(digest("Forms.\n").to_uppercase().replace("SHA", "sha"))
    });
    assert_eq!(verify(&upper.unwrap(), FORMS, b"Forms.\n"), Ok(()));
}

#[test]
fn a_skill_at_the_limits_is_taken_and_one_beyond_is_not() {
    let with = |files: usize, each: u64| {
        let mut list = vec![json!({"uri": MAIN, "digest": digest(""), "size": 0})];
        list.extend((1..files).map(
            |n| json!({"uri": format!("skill://pdf-processing/f{n}"), "digest": digest(""), "size": each}),
        ));
        let mut entry = entry(TEXT);
        entry["resources"] = json!(list);
        Skill::read(&entry)
    };
    assert!(with(MAX_FILES, 0).is_ok() && with(2, MAX_BYTES).is_ok());
    assert_eq!(with(MAX_FILES + 1, 0), Err(SkillFault::TooManyFiles(MAX_FILES + 1)));
    assert_eq!(with(2, MAX_BYTES + 1), Err(SkillFault::TooLarge(MAX_BYTES + 1)));
    assert_eq!(with(3, u64::MAX), Err(SkillFault::TooLarge(u64::MAX)));
}

#[test]
fn an_approval_is_bound_to_every_file_but_not_to_their_order() {
    let one = skill(TEXT).fingerprint().unwrap();
    let mut turned = entry(TEXT);
    turned["resources"].as_array_mut().unwrap().reverse();
    assert_eq!(Skill::read(&turned).unwrap().fingerprint(), Some(one.clone()));
    let mut changed = entry(TEXT);
    changed["resources"][1]["digest"] = json!(digest("Other.\n"));
    assert_ne!(Skill::read(&changed).unwrap().fingerprint(), Some(one.clone()));
    let mut fewer = entry(TEXT);
    fewer["resources"].as_array_mut().unwrap().pop();
    assert_ne!(Skill::read(&fewer).unwrap().fingerprint(), Some(one));
}

fn compare(yaml: &str, listed: &Value) -> Result<(), String> {
    frontmatter::compare(format!("---\n{yaml}\n---\nText\n").as_bytes(), listed.as_object().unwrap())
}

#[test]
fn front_matter_of_any_style_is_compared_by_what_it_means() {
    for (yaml, listed) in [
        ("name: a\ndescription: b", json!({"description": "b", "name": "a"})),
        (
            "\"name\": 'it''s' # why\ndescription: >-\n  one\n  two\n",
            json!({"name": "it's", "description": "one two"}),
        ),
        ("description: |\n  one\n  two", json!({"description": "one\ntwo\n"})),
        (
            "metadata: {version: 2.1.0, n: 1}\nlist: [a, 1, \"1\"]\nl2:\n- x\n- y: z",
            json!({"metadata": {"version": "2.1.0", "n": 1}, "list": ["a", 1, "1"], "l2": ["x", {"y": "z"}]}),
        ),
        (
            "a: true\nb: yes\nc: no\nd: ~\ne:\nf: null",
            json!({"a": true, "b": true, "c": "no", "d": null, "e": null, "f": null}),
        ),
        (
            "a: 1.0\nb: 1e3\nc: 0x10\nd: 010\ne: 010\nf: -7\ng: 1_000\nh: 18446744073709551615",
            json!({"a": 1, "b": 1000.0, "c": 16, "d": 10, "e": 8, "f": -7, "g": 1000, "h": 18_446_744_073_709_551_615_u64}),
        ),
        (
            "d: 2026-01-01\ne: 2026-01-01\nv: 1.10",
            json!({"d": "2026-01-01", "e": "2026-01-01T00:00:00.000Z", "v": "1.10"}),
        ),
        ("a: !!str 1\nb: ü", json!({"a": "1", "b": "ü"})),
    ] {
        assert_eq!(compare(yaml, &listed), Ok(()), "{yaml}");
    }
}

#[test]
fn any_difference_in_front_matter_is_named() {
    for (yaml, listed, why) in [
        ("name: a", json!({"name": "b"}), "name differs"),
        ("name: a", json!({}), "name differs"),
        ("name: a", json!({"name": "a", "extra": 1}), "extra differs"),
        ("name: a\nallowed-tools: Bash", json!({"name": "a"}), "allowed-tools differs"),
        ("a: \"1\"", json!({"a": 1}), "a differs"),
        ("a: 'true'", json!({"a": true}), "a differs"),
        ("a: 1", json!({"a": 2}), "a differs"),
        ("a: .inf", json!({"a": 1}), "a differs"),
        ("a: inf", json!({"a": 1}), "a differs"),
        ("a: [1, 2]", json!({"a": [1]}), "a differs"),
        ("a: [1, 2]", json!({"a": [1, 3]}), "a[1] differs"),
        ("a: {b: {c: 1}}", json!({"a": {"b": {"c": 2}}}), "a.b.c differs"),
        ("a: {b: 1}", json!({"a": null}), "a differs"),
        ("- a", json!({}), "it is no map"),
        ("text", json!({}), "it is no map"),
        ("", json!({}), "it is empty"),
        ("a: 1\na: 2", json!({"a": 2}), "a is there twice"),
        ("a: &x 1\nb: *x", json!({"a": 1, "b": 1}), "it uses references"),
        ("[a]: 1", json!({}), "a key is no text"),
        ("a: !evil 1", json!({"a": 1}), "it uses the tag"),
        ("a: [1", json!({}), "it is no YAML"),
        ("a: b: c", json!({}), "it is no YAML"),
    ] {
        let refused = compare(yaml, &listed).expect_err(yaml);
        assert!(refused.starts_with(why), "{refused:?} for {yaml}");
    }
}

#[test]
fn a_file_without_front_matter_has_nothing_to_compare() {
    let listed = Map::new();
    for (file, why) in [
        (&b""[..], "it has no end"),
        (b"# Title\n", "there is none"),
        (b"\n---\na: 1\n---\n", "there is none"),
        (b"----\na: 1\n---\n", "there is none"),
        (b"---\na: 1\n", "it has no end"),
        (b"---\na: \xFF\n---\n", "it has no end"),
        (b"---\n---\n", "it is empty"),
    ] {
        assert_eq!(
            frontmatter::compare(file, &listed),
            Err(why.to_owned()),
            "{}",
            String::from_utf8_lossy(file)
        );
    }
    let listed = json!({"a": 1});
    for file in [&b"---\r\na: 1\r\n---\r\nText"[..], b"\xEF\xBB\xBF--- \na: 1\n...\n", b"---\na: 1\n---"] {
        assert_eq!(frontmatter::compare(file, listed.as_object().unwrap()), Ok(()));
    }
}

#[test]
fn front_matter_made_to_exhaust_is_given_up_quickly() {
    let before = std::time::Instant::now();
    for yaml in [
        "[".repeat(60_000),
        "{a: ".repeat(15_000),
        "- ".repeat(30_000),
        "a: [".to_owned() + &"1,".repeat(30_000) + "]",
        (0..60).map(|n| format!("{}k{n}:\n", " ".repeat(n))).collect(),
        (0..6_000).map(|n| format!("k{n}: 1\n")).collect(),
        "? ".repeat(30_000),
        "a: \"".to_owned() + &"\\".repeat(60_000),
    ] {
        assert!(compare(&yaml, &json!({"a": 1})).is_err(), "{}", yaml.chars().take(20).collect::<String>());
    }
    assert!(before.elapsed() < std::time::Duration::from_secs(5), "{:?}", before.elapsed());
}
