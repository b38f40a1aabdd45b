"""Coming in: the link that `foretell serve` printed, or its token typed into a form."""

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from foretell.app.web.links import served
from foretell.app.web.rendering import page
from foretell.app.web.security import COOKIE, Access, Trusted, access_of, form_of

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login(request: Request, token: str = "") -> Response:
    """With the token, straight in; without, a form that asks for it."""
    return _entered(access_of(request), token) if token else page(request, "login.html", None)


@router.post("/login")
async def login_by_form(request: Request) -> Response:
    """The form, sent."""
    return _entered(access_of(request), (await form_of(request)).get("token", [""])[0].strip())


@router.post("/logout")
def logout(_: Trusted) -> Response:
    """Forget the session."""
    answer = RedirectResponse(served("home"), status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


def _entered(access: Access, token: str) -> Response:
    if not access.holds(token):
        raise HTTPException(403, "that is not the token of this server; it was printed when the server was started")
    answer = RedirectResponse(served("home"), status_code=303)
    answer.set_cookie(COOKIE, access.new_session(), httponly=True, samesite="strict", path="/")
    return answer
