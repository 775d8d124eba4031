//: README.md: func showTerms
