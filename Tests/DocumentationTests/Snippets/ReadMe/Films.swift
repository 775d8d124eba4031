//: README.md: func mirror(
