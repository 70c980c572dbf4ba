#: page [picture]                   test the HTTP server's page of timers in a headless Chromium; picture: retake its pictures in doc

script=test/http/page.py
(($# <= 1)) && [[ ${1-} =~ ^(picture)?$ ]] || does_not_know "$*" picture
[[ ${1-} != picture ]] || script=tools/page_picture.py
need python3:python3 chromium:chromium chromedriver:chromium-driver
build release clang++-19 http_server
python3 "$script" "$dir/examples" "$(command -v chromium || command -v chromium-browser)" "$(command -v chromedriver)"
