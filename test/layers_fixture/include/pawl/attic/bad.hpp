// No layer has this folder.
