import importlib
import inspect
import pkgutil

import foretell.forecasters


def public_callables():
    for module_info in pkgutil.walk_packages(foretell.forecasters.__path__, "foretell.forecasters."):
        module = importlib.import_module(module_info.name)
        for name, item in vars(module).items():
            if name.startswith("_") or getattr(item, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(item):
                yield f"{module.__name__}.{name}", item
                for method_name, method in inspect.getmembers(item, inspect.isfunction):
                    yield f"{module.__name__}.{name}.{method_name}", method
            elif inspect.isfunction(item):
                yield f"{module.__name__}.{name}", item


def test_no_forecaster_signature_accepts_a_resolution() -> None:
    seen = 0
    for where, item in public_callables():
        try:
            parameters = inspect.signature(item).parameters.values()
        except ValueError:
            continue
        for parameter in parameters:
            seen += 1
            annotation = str(parameter.annotation)
            assert "Resolution" not in annotation, f"{where} takes {parameter}"
            assert "questions.resolution" not in annotation, f"{where} takes {parameter}"
    assert seen > 50
