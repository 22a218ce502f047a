from fluents.cli import main

main()
