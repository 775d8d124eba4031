import Foundation
import Testing

@testable import RemoteHTTP

struct ProblemTests {
    private func stated(by json: String, _ type: String?) throws -> Problem? {
        var error = RemoteError(.status, .badStatus, operation: "GET /", "refused")
        if let type { try error.fields.append("Content-Type", type) }
        error.body = Data(json.utf8)
        return error.problem
    }

    @Test func `a problem is parsed with its extensions`() throws {
        let json = """
            {"type":"https://example.com/probs/out-of-credit","title":"You do not have enough credit.","status":403,
             "detail":"Your balance is 30.","instance":"/account/12345","balance":30,"accounts":["/a",{"b":null,"c":true}]}
            """
        let problem = try #require(try stated(by: json, "application/problem+json; charset=utf-8"))
        #expect(problem.type == "https://example.com/probs/out-of-credit")
        #expect(problem.title == "You do not have enough credit.")
        #expect(problem.status == 403)
        #expect(problem.detail == "Your balance is 30.")
        #expect(problem.instance == "/account/12345")
        #expect(
            problem.extensions == ["balance": .number(30), "accounts": .list([.text("/a"), .fields(["b": .null, "c": .flag(true)])])])
    }

    @Test(arguments: [
        #"{}"#, #"{"type":3,"title":[],"status":"403","detail":null,"instance":{}}"#, #"{"status":4030}"#, #"{"status":403.5}"#,
        #"{"status":1e300}"#,
    ])
    func `a member of the wrong type is ignored`(json: String) throws {
        let problem = try #require(Problem(json: Data(json.utf8)))
        #expect(problem.type == "about:blank")
        #expect(problem.title == nil && problem.status == nil && problem.detail == nil && problem.instance == nil)
        #expect(problem.extensions.isEmpty)
    }

    @Test(arguments: ["", "[]", "3", "null", "{", "<html>"])
    func `a text other than a JSON object is not a problem`(json: String) {
        #expect(Problem(json: Data(json.utf8)) == nil)
    }

    @Test func `a server does not choose how deep the stack grows`() {
        func nested(_ levels: Int) -> Problem? {
            Problem(json: Data((#"{"a":"# + String(repeating: "[", count: levels) + String(repeating: "]", count: levels) + "}").utf8))
        }
        #expect(nested(31) != nil && nested(32) == nil && nested(500) == nil)
    }

    @Test(arguments: [nil, "application/json", "text/plain"])
    func `a body with another media type is not a problem`(type: String?) throws {
        #expect(try stated(by: "{}", type) == nil)
    }
}
