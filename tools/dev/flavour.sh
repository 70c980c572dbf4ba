#: flavour standalone [FOLDER]      generate Pawl for standalone Asio: FOLDER/pawl/*.hpp need asio/ and no Boost.Asio.
#:                                  FOLDER: build/standalone (default)

[[ ${1-} == standalone ]] || { (($#)) && does_not_know "$1" standalone; misused "flavour needs a name: standalone"; }
(($# <= 2)) || does_not_know "$3"
need python3:python3
folder=${2:-$PWD/build/standalone}
[[ $folder != -* ]] || does_not_know "$folder"
[[ $folder == /* ]] || folder=$here/$folder
python3 tools/standalone.py "$folder"
echo "dev: Pawl for standalone Asio is in $folder/pawl."
