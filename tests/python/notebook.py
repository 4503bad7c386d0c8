"""Runs the code cells of a notebook in the place of Jupyter, and shows what a cell ends with as Jupyter
would: an expression as its picture, else as text. Usage: notebook.py FILE.ipynb"""
import ast
import json
import sys

with open(sys.argv[1]) as file:
    cells = json.load(file)["cells"]
names = {}
for cell in cells:
    if cell["cell_type"] != "code":
        continue
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), sys.argv[1], "exec"), names)
    if last:
        shown = eval(compile(ast.Expression(last.value), sys.argv[1], "eval"), names)
        if shown is not None:
            print(shown._repr_svg_() if hasattr(shown, "_repr_svg_") else repr(shown))
