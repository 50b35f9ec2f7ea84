// The table of update rules, one line each: RULE(Name, number). The number goes to the wire and to the arena: never
// renumber. RuleKind::kName is made from the line, and kNameRule, which a file of rules/ defines (rule_descriptor.h).
#pragma once

#define MUSTER_UPDATE_RULES(RULE) \
  RULE(Sgd, 1)                    \
  RULE(Momentum, 2)               \
  RULE(Adam, 3)                   \
  RULE(Adagrad, 4)                \
  RULE(AdamW, 5)                  \
  RULE(RmsProp, 6)                \
  RULE(Adadelta, 7)               \
  RULE(Ftrl, 8)                   \
  RULE(Add, 9)
