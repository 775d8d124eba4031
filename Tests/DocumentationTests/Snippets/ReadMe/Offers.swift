//: README.md: struct Offer
