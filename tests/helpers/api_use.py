"""Finds what a script asks of modules, and what they don't have."""

import ast
import inspect
import types

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def find_misuses(module, packages):
  """Returns "line: what is wrong" of a module's source.

  Attributes of modules must exist, and calls must fit the signatures of the
  functions and classes of `packages`, whose arguments are known by their number
  and names alone.

  Args:
    module: imported.
    packages: names of packages or modules.
  """
  found = []

  def resolve(node, local):
    """Returns the object of a name or an attribute of a module, or None."""
    if isinstance(node, ast.Name):
      return None if node.id in local else vars(module).get(node.id)
    if not isinstance(node, ast.Attribute):
      return None
    owner = resolve(node.value, local)
    return getattr(owner, node.attr, None) if _is_module(owner) else None

  def check(node, local):
    if isinstance(node, ast.Attribute):
      owner = resolve(node.value, local)
      if _is_module(owner) and not hasattr(owner, node.attr):
        found.append(f"{node.lineno}: {ast.unparse(node)} doesn't exist")
    elif isinstance(node, ast.Call):
      called = resolve(node.func, local)
      home = getattr(called, "__module__", None) or ""
      is_ours = callable(called) and home.partition(".")[0] in packages
      if is_ours and (why := _misfit(called, node)):
        found.append(f"{node.lineno}: {ast.unparse(node.func)}: {why}")

  def walk(node, local):
    check(node, local)
    if isinstance(node, _FUNCTIONS):
      local = local | _local_names(node)
    for child in ast.iter_child_nodes(node):
      walk(child, local)

  walk(ast.parse(inspect.getsource(module)), frozenset())
  return found


def _is_module(x):
  return isinstance(x, types.ModuleType)


def _local_names(function):
  """Returns the names that a function binds, in nested functions too."""
  nodes = list(ast.walk(function))
  return {n.arg for n in nodes if isinstance(n, ast.arg)} | {
    n.id
    for n in nodes
    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
  }


def _misfit(called, call):
  """Returns why the arguments of an ast.Call don't fit, or ""."""
  try:
    signature = inspect.signature(called)
  except (TypeError, ValueError):
    return ""
  names = {k.arg: None for k in call.keywords if k.arg}
  is_open = len(names) < len(call.keywords) or any(
    isinstance(x, ast.Starred) for x in call.args
  )
  try:
    if is_open:  # The rest is unknown.
      signature.bind_partial(**names)
    else:
      signature.bind(*call.args, **names)
  except TypeError as error:
    return str(error)
  return ""
