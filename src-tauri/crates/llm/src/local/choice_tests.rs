use super::*;

fn tool(name: &str, description: &str, schema: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: description.into(), schema }
}

#[test]
fn names_are_short_where_that_is_enough() {
    let names = |tools: &[&str]| {
        let tools: Vec<ToolSpec> = tools.iter().map(|t| tool(t, "", json!({}))).collect();
        offer(&tools, "").into_iter().map(|t| t.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["a__read", "b__read", "b__list"]), ["a__read", "b__read", "list"]);
    assert_eq!(names(&["a__answer_directly", "a__"]), ["a__answer_directly", "a__"]);
}

#[test]
fn what_the_message_speaks_of_is_among_the_few_that_are_offered() {
    let mut tools: Vec<ToolSpec> = (0..40).map(|n| tool(&format!("x__do_{n}"), "Odd.", json!({}))).collect();
    tools.insert(20, tool("w__weather", "The weather in a city.", json!({})));
    tools.insert(30, tool("w__tianqi", "查询城市的天气。", json!({})));
    for (message, name) in [("How is the weather in Rome?", "weather"), ("罗马的天气怎么样？", "tianqi")]
    {
        let offered = offer(&tools, message);
        assert_eq!(offered.len(), MAX_TOOLS);
        assert!(offered.iter().any(|t| t.name == name), "{message}");
    }
}

#[test]
fn every_argument_is_bounded_and_page_numbers_are_not_offered() {
    let schema = json!({"properties": {
        "path": {"type": "string"}, "page": {"type": "integer"}, "folder": {"type": ["string", "null"]},
        "mode": {"enum": ["a", "b"]}, "list": {"type": "array"}, "deep": {"type": "object"}, "odd": true},
        "required": ["path", "mode", "list", "deep", "odd"]});
    let kept = arguments(&schema);
    assert_eq!(kept["properties"]["path"], json!({"type": "string", "maxLength": 300}));
    assert!(kept["properties"].get("page").is_none());
    assert_eq!(kept["properties"]["mode"], json!({"enum": ["a", "b"]}));
    assert_eq!(kept["properties"]["list"]["maxItems"], 8);
    assert_eq!(kept["properties"]["odd"]["maxLength"], 300);
    for bad in [json!(null), json!({"properties": 1}), json!({"required": {"a": 1}})] {
        assert_eq!(arguments(&bad)["properties"], json!({}));
    }
}

#[test]
fn a_decision_is_read_or_refused() {
    let tools = offer(
        &[tool(
            "f__read",
            "",
            json!({"properties": {"p": {"type": "string"}, "q": {"type": "string"}}, "required": ["p"]}),
        )],
        "",
    );
    assert_eq!(read("answer_directly\"}", &tools, ""), Ok(None));
    let call =
        read("read\",\"arguments\":{\"p\":\"a\",\"q\":\"made up\"}}", &tools, "read a").unwrap().unwrap();
    assert_eq!((call.name.as_str(), call.arguments), ("f__read", Ok(json!({"p": "a"}))));
    let call =
        read("read\",\"arguments\":{\"p\":\"a\",\"q\":\"Docs/\"}}", &tools, "in my docs").unwrap().unwrap();
    assert_eq!(call.arguments, Ok(json!({"p": "a", "q": "Docs/"})));
    assert!(read("read\",\"argum", &tools, "").is_err());
    assert!(read("other\",\"arguments\":{}}", &tools, "").is_err());
}

#[test]
fn a_text_with_quotes_stays_inside_the_grammar() {
    let offered = offer(&[tool("a\"b", "", json!({}))], "");
    assert!(grammar(&offered, "", true).contains(r#""a\"b\",\"arguments\":""#));
}

#[test]
fn a_file_that_is_named_wants_a_tool_that_takes_files() {
    let schema = json!({"properties": {"path": {"type": "string"}}, "required": ["path"]});
    let files = offer(&[tool("f__read_file", "", schema)], "");
    for message in ["Summarize report.md for me", "帮我总结一下 report.md", "What does a/b-1.tar.gz say?"]
    {
        assert!(speaks_of_a_file(message, &files), "{message}");
    }
    for message in ["Hello. How are you?", "Go to example.com", "It costs 3.50", "e.g. this", "你好。"] {
        assert!(!speaks_of_a_file(message, &files), "{message}");
    }
    let weather = offer(&[tool("w__weather", "", json!({}))], "");
    assert!(!speaks_of_a_file("Summarize report.md", &weather));
    assert!(!grammar(&files, "Summarize report.md", true).contains("answer_directly"));
    assert!(grammar(&files, "Summarize report.md", false).contains("answer_directly"));
}

#[test]
fn nothing_is_changed_that_nobody_asked_to_change() {
    for (tool, message, open) in [
        ("write_file", "Write me a short poem about rain", false),
        ("write_file", "写一首关于雨的短诗", false),
        ("write_file", "Summarize report.md for me", false),
        ("write_file", "Create a file called todo.txt", true),
        ("write_file", "Save that as a document", true),
        ("write_file", "新建一个文件 todo.txt", true),
        ("move_file", "Rename draft.txt to final.txt", true),
        ("move_file", "把 draft.txt 改名为 final.txt", true),
        ("move_file", "What does notes.txt say?", false),
        ("trash_file", "Delete old.txt", true),
        ("trash_file", "删除 old.txt", true),
        ("trash_file", "What does notes.txt say?", false),
        // No language whose verbs we know.
        ("trash_file", "Borra old.txt", true),
        ("read_file", "Hello", true),
        ("search_text", "When is the meeting in notes.txt?", false),
        ("search_text", "帮我总结一下 report.md", false),
        ("search_text", "Search notes.txt for milk", true),
        ("search_text", "What do I know about Lisbon?", true),
    ] {
        assert_eq!(asked_for(&format!("files__{tool}"), message), open, "{tool}: {message}");
    }
}
