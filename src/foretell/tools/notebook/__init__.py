"""A notebook whose cells run in a sandboxed kernel."""

from foretell.interface import offer

HOMES = {
    "foretell.tools.notebook.endpoints": (
        "Endpoint LocalFile Parameter check_parameters days_ahead_endpoint describe_endpoint fenced_tool_endpoint "
        "journaled_endpoint local_files_endpoint market_prices_endpoint series_endpoint"
    ),
    "foretell.tools.notebook.kernel": "ExecutionEnd Kernel",
    "foretell.tools.notebook.limits": "KernelLimits MIB OutputCaps",
    "foretell.tools.notebook.notebook": (
        "CellAttempt DisplayOutput ErrorOutput MarkdownCell Notebook Output PythonCell StreamOutput ipynb "
        "report_for_prompt write_ipynb"
    ),
    "foretell.tools.notebook.pool": "KernelPool UNSANDBOXED",
    "foretell.tools.notebook.proxy": "DataProxy ProxyLimits",
    "foretell.tools.notebook.sandbox": "SandboxUnavailable",
    "foretell.tools.notebook.sandbox_check": "check_sandbox diagnosis weaknesses",
    "foretell.tools.notebook.session": "CellResult NotebookSession open_notebook setup_source",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
