module handlers

go 1.19
